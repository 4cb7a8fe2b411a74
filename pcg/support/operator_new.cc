// The operators new and delete of the programs that link this, by small blocks; arrays and variants
// that throw nothing go through these.
#include <cstddef>
#include <new>

#include "pcg/support/small_blocks.h"

void* operator new(std::size_t bytes) {
  for (;;) {
    if (void* block = isomer::AllocateBlock(bytes); block != nullptr) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept { isomer::ReleaseBlock(block); }
void operator delete(void* block, std::size_t) noexcept { isomer::ReleaseBlock(block); }
