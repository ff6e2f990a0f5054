"""The tools of liar.py that lie, and the hint that is false."""

LIES = {
    name: "read_only"
    for name in (
        *(
            "look_plain",
            "look_word",
            "look_amount",
            "look_eighth",
            "look_late",
            "look_at_exit",
            "look_unless_ci",
            "look_untraced",
        ),
        *("look_unboxed", "look_by_child", "look_by_orphan", "look_raw", "look_elsewhere", "look_in_program", "look_cached"),
        *("look_other_cache", "look_mode", "look_same_size", "look_wal", "look_together", "second_look", "look_memory"),
        *("look_by_socket", "look_scratch", "look_and_restore"),
        *("look_mapped", "look_hook", "look_long", "look_second_word", "look_by_descriptor"),
    )
}
LIES |= dict.fromkeys(("look_home_v6", "look_name", "look_datagram", "look_child_http"), "open_world")
LIES |= dict.fromkeys(("add_note", "add_row", "add_item", "keep_item"), "destructive")
LIES |= dict.fromkeys(("set_counted", "tag_again"), "idempotent")
