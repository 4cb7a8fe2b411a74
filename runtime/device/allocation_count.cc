#include "runtime/device/allocation_count.h"

#include <malloc.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ISOMER_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ISOMER_SANITIZED
#endif

#if defined(__GLIBC__) && !defined(ISOMER_SANITIZED)
#define ISOMER_COUNTS_ALLOCATIONS
#endif

namespace isomer {
namespace {

thread_local int64_t live = 0;
thread_local int64_t peak = 0;

}  // namespace

Allocations ThreadAllocations() { return {live, peak}; }
void ResetPeakAllocations() { peak = live; }

#ifdef ISOMER_COUNTS_ALLOCATIONS

bool AllocationsAreCounted() { return true; }

namespace {

void* Counted(void* data) {
  if (data == nullptr) return nullptr;
  live += static_cast<int64_t>(malloc_usable_size(data));
  if (live > peak) peak = live;
  return data;
}

void Uncount(void* data) {
  if (data != nullptr) live -= static_cast<int64_t>(malloc_usable_size(data));
}

}  // namespace

#else

bool AllocationsAreCounted() { return false; }

#endif

}  // namespace isomer

#ifdef ISOMER_COUNTS_ALLOCATIONS

extern "C" {

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t size) { return isomer::Counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return isomer::Counted(__libc_calloc(count, size)); }
void* memalign(size_t alignment, size_t size) {
  return isomer::Counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

void* realloc(void* data, size_t size) {
  const int64_t before = data == nullptr ? 0 : static_cast<int64_t>(malloc_usable_size(data));
  void* moved = __libc_realloc(data, size);
  if (moved == nullptr && size != 0) return nullptr;  // `data` is as it was.
  isomer::live -= before;
  return isomer::Counted(moved);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) {
    return EINVAL;
  }
  void* data = memalign(alignment, size);
  if (data == nullptr) return ENOMEM;
  *result = data;
  return 0;
}

void free(void* data) {
  isomer::Uncount(data);
  __libc_free(data);
}

}  // extern "C"

#endif
