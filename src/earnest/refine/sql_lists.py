"""What a statement may be made of and still only read: lists for `sql`, each by the parser's names of nodes."""

from typing import Final

_READING = """
    Select From Join Lateral Where Group Having Order Ordered Limit Offset Fetch Distinct Column Identifier Table
    TableAlias Alias Aliases Literal National Star Null Boolean Var Placeholder Paren Tuple Values CTE With Subquery
    Union Except Intersect LimitOptions Window WindowSpec Filter WithinGroup Qualify RowNumber
    And Or Xor Not Neg EQ NEQ NullSafeEQ NullSafeNEQ GT GTE LT LTE Is In Between Like ILike Glob Match Escape
    SimilarTo RegexpLike RegexpILike Add Sub Mul Div IntDiv Mod DPipe BitwiseAnd BitwiseOr BitwiseXor BitwiseNot
    BitwiseLeftShift BitwiseRightShift Collate Any All Exists Case If Cast DataType DataTypeParam Interval
    Bracket Array Cube Rollup GroupingSets
"""
READING_NODES: Final = frozenset(_READING.split())
"""Structure and operators."""

_QUERY = "with_ match laterals joins where group having qualify windows order limit offset "
_CLAUSES = {
    "Select": _QUERY + "expressions distinct from_",
    "Subquery": _QUERY + "this alias",
    "Union": _QUERY + "this expression distinct",
    "Except": _QUERY + "this expression distinct",
    "Intersect": _QUERY + "this expression distinct",
    "Table": "this alias db catalog laterals joins ordinality only",
    "CTE": "this alias materialized",
    "With": "expressions recursive",
    "Lateral": "this alias ordinality",
    "Join": "this on side kind using method expressions",
    "Limit": "this expression offset",
    "Fetch": "direction count limit_options",
    "Star": "",
}
CLAUSES: Final = {name: frozenset(words.split()) for name, words in _CLAUSES.items()}
"""What these nodes may hold: hints, locks, samples, INTO and whatever a later parser adds are not among it."""

_FUNCTION_NODES = """
    Count CountIf Sum Avg Min Max GroupConcat ArrayAgg Stddev StddevPop StddevSamp Variance VariancePop
    Median Quantile PercentileCont PercentileDisc First Last FirstValue LastValue NthValue Lag Lead Rank DenseRank
    PercentRank CumeDist Ntile LogicalAnd LogicalOr
    Abs Ceil Floor Round Sqrt Pow Exp Ln Log Sign Greatest Least Mod Trunc
    Coalesce Nullif Lower Upper Length Trim Substring Concat ConcatWs Replace Left Right StrPosition
    Reverse Repeat Pad Initcap Ascii Chr Hex Typeof SplitPart Translate
    CurrentDate CurrentTime CurrentTimestamp Date Datetime Time Timestamp Extract DateTrunc TimestampTrunc DateAdd
    DateSub DateDiff DatetimeDiff TimestampDiff Year Month Day Hour Minute Second DayOfWeek DayOfMonth DayOfYear
    Week TimeToStr StrToTime StrToDate TsOrDsToTimestamp TsOrDsToDate TsOrDsToTime TsOrDsToDatetime ToChar UnixToTime
    TimeToUnix LastDay
    JSONExtract JSONExtractScalar JSONBExtract JSONBExtractScalar JSONPath JSONPathRoot JSONPathKey
    JSONPathSubscript JSONPathWildcard JSONType
"""
FUNCTION_NODES: Final = frozenset(_FUNCTION_NODES.split())
"""Functions that the parser knows by meaning; each computes from its arguments alone, in all dialects."""

_FUNCTIONS = """
    typeof instr printf unicode quote total ifnull iif julianday unixepoch datetime strftime likely unlikely
    json_each json_tree json_array_length json_valid json_type char_length character_length octet_length
    jsonb_array_length json_array_elements jsonb_array_elements jsonb_each json_object_keys jsonb_object_keys
    date_part age to_date to_number btrim starts_with bm25 snippet highlight
"""
_PRAGMAS = """
    table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list database_list
    collation_list function_list module_list compile_options
"""
READING_PRAGMAS: Final = frozenset(_PRAGMAS.split())
"""Pragmas of SQLite that set nothing, with an argument or without."""

FUNCTIONS: Final = frozenset((*_FUNCTIONS.split(), *(f"pragma_{name}" for name in READING_PRAGMAS)))
"""Functions that the parser keeps by name, in lower case."""

_ADDITIVE = """
    Insert Values Returning Create Schema ColumnDef ColumnConstraint PrimaryKeyColumnConstraint
    NotNullColumnConstraint UniqueColumnConstraint DefaultColumnConstraint CheckColumnConstraint
    AutoIncrementColumnConstraint PrimaryKey ForeignKey Reference Constraint IndexParameters
"""
ADDITIVE_NODES: Final = frozenset(_ADDITIVE.split())
"""What a statement that only adds may be made of besides."""

SEQUENCE_COLUMNS: Final = frozenset(("nextval", "currval", "prevval", "lastval"))
"""Names that some databases take for a call where another sees a column (`orders_seq.nextval`)."""

FILE_TABLES: Final = frozenset(("fsdir", "zipfile", "csv", "lsdir"))
"""Tables of SQLite that take a file's name by a hidden column, as in `WHERE path = '/etc'`."""

_WORDS = """
    ALTER ATTACH BACKUP BEGIN BULK CALL COMMIT COPY CREATE DBCC DECLARE DELETE DENY DETACH DO DROP EXEC EXECUTE GO
    GRANT HANDLER INSERT INTO KILL LOAD LOCK MERGE PRAGMA REINDEX RENAME RESTORE REVOKE ROLLBACK SET SHUTDOWN
    TRUNCATE UNLOCK UPDATE USE VACUUM WAITFOR TABLE CHECKPOINT RECONFIGURE REVERT SETUSER
"""
STATEMENT_WORDS: Final = frozenset(_WORDS.split())
"""Words that begin a statement. Where a parser takes one for a name, a server may see a second statement."""
