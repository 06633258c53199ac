//! How this process itself uses memory.

/// Lets all threads share two heaps instead of having one each, every one of which keeps what was freed in it: in a long conversation
/// that is up to a tenth of all memory, and haft's threads hardly ever allocate at the same time.
///
/// For `main`, before there is a second thread. Only glibc has a heap for each thread.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "neither the standard library nor rustix has it")]
    // SAFETY: this sets a number of the allocator, which takes a lock of its own for it.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}
