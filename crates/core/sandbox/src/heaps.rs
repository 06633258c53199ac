//! How this process itself uses memory. Only glibc has these settings, and needs them.

/// Lets all threads share two heaps instead of having one each, every one of which keeps what was
/// freed in it: in a long conversation that is up to a tenth of all memory, and haft's threads
/// hardly ever allocate at the same time. What is large, such as the body of a request, is in no
/// heap and so goes when it is freed; by itself glibc stops doing so after the first.
///
/// For `main`, before there is a second thread.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "neither the standard library nor rustix has it")]
    // SAFETY: these set numbers of the allocator, which takes a lock of its own for it.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 * 1024);
    }
}

/// Gives what was freed back to the system: for the end of work that took much memory for a while,
/// such as opening a conversation. By itself the allocator gives back only what lies at the end of
/// a heap.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "neither the standard library nor rustix has it")]
    // SAFETY: this touches nothing but pages that hold no allocation, under the allocator's own
    // locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
