# cython: language_level=3, boundscheck=False
"""Whether paths still lead straight to where they led, asked of the kernel without a detour. See `leads.py`."""

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <stdint.h>
    #include <sys/stat.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    /* 1 where a path is there, no part of it is a symbolic link, and it is no file of several names. */
    static int straight(const char *path) {
    #if defined(SYS_openat2) && defined(O_PATH)
        /* struct open_how and RESOLVE_NO_SYMLINKS of linux/openat2.h, which not every libc's headers come with. */
        struct { uint64_t flags, mode, resolve; } how = {O_PATH | O_CLOEXEC, 0, 0x04};
        struct stat about;
        long fd;
        do fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how); while (fd < 0 && errno == EINTR);
        if (fd < 0) return 0;
        int fine = !fstat((int)fd, &about) && (about.st_nlink < 2 || !S_ISREG(about.st_mode));
        close((int)fd);
        return fine;
    #else
        (void)path;
        return 0;
    #endif
    }
    """
    int straight(const char* path) noexcept nogil
    const char* LEADS_MARK

MARK = LEADS_MARK.decode()


def lead_straight(tuple paths not None):
    """Whether each of these (bytes, without a null byte, absolute, without `.`, `..` and empty parts) is where it says."""
    cdef bytes path
    cdef const char* text
    cdef int fine
    for path in paths:
        text = path
        with nogil:
            fine = straight(text)
        if not fine:
            return False
    return True
