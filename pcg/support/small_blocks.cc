#include "pcg/support/small_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace isomer {
namespace {

constexpr size_t kUnit = 16;
constexpr int kClasses = kLargestSmallBlock / kUnit + 1;  // by size in units; the first is unused
constexpr int kBatch = 256;
// Of memory that is new, so much becomes blocks at a time: what is not used is not touched.
constexpr size_t kCarvedBytes = 4096;
constexpr int kPageBits = 16;
constexpr uintptr_t kRange = uintptr_t{1} << 36, kPage = uintptr_t{1} << kPageBits;
// No address is in the range then.
constexpr uintptr_t kNoRange = uintptr_t{1} << 63;

struct Block {
  Block* next;
  Block* next_batch;  // of the first of a batch that no thread has
};

// The sizes of pages, in units. Written before a block of the page is known to anyone.
uint8_t class_of_page[kRange >> kPageBits];
std::atomic<uintptr_t> range = kNoRange;

// What threads share.
class Pool {
 public:
  // A list of free blocks, or null.
  Block* Take(int size_class) {
    std::lock_guard lock(mutex_);
    Block*& batches = batches_[size_class];
    if (batches == nullptr) return Carve(size_class);
    Block* batch = batches;
    batches = batch->next_batch;
    return batch;
  }

  void Give(int size_class, Block* batch) {
    std::lock_guard lock(mutex_);
    batch->next_batch = batches_[size_class];
    batches_[size_class] = batch;
  }

 private:
  struct Fresh {
    uintptr_t at = 0, end = 0;
  };

  Block* Carve(int size_class) {
    const size_t size = static_cast<size_t>(size_class) * kUnit;
    Fresh& fresh = fresh_[size_class];
    if (fresh.end - fresh.at < size) {
      const uintptr_t page = TakePage();
      if (page == 0) return nullptr;
      class_of_page[(page - range.load(std::memory_order_relaxed)) >> kPageBits] =
          static_cast<uint8_t>(size_class);
      fresh = {page, page + kPage};
    }
    const size_t count =
        std::min((fresh.end - fresh.at) / size, std::max<size_t>(1, kCarvedBytes / size));
    Block* list = nullptr;
    for (size_t i = count; i-- > 0;) {
      Block* block = reinterpret_cast<Block*>(fresh.at + i * size);
      block->next = list;
      list = block;
    }
    fresh.at += count * size;
    return list;
  }

  uintptr_t TakePage() {
    if (next_page_ == 0 && !refused_) Reserve();
    if (refused_ || next_page_ == end_) return 0;
    const uintptr_t page = next_page_;
    next_page_ += kPage;
    return page;
  }

  void Reserve() {
    void* reserved = mmap(nullptr, kRange + kPage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    refused_ = reserved == MAP_FAILED;
    if (refused_) return;
    next_page_ = (reinterpret_cast<uintptr_t>(reserved) + kPage - 1) / kPage * kPage;
    end_ = next_page_ + kRange;
    range.store(next_page_, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  Block* batches_[kClasses] = {};
  Fresh fresh_[kClasses] = {};
  uintptr_t next_page_ = 0, end_ = 0;
  bool refused_ = false;
};

// Never destroyed: blocks are released until the very end.
constinit Pool pool;

// A thread's lists. `count` is at least the length of `current`.
struct Lists {
  Block* current;
  Block* spare;
  int count;
};
constinit thread_local Lists lists[kClasses] = {};
constinit thread_local bool gives_back = false;

// What a thread has goes to the others when it ends.
struct GiveBack {
  ~GiveBack() {
    for (int c = 1; c < kClasses; ++c) {
      if (lists[c].current != nullptr) pool.Give(c, lists[c].current);
      if (lists[c].spare != nullptr) pool.Give(c, lists[c].spare);
      lists[c] = {};
    }
  }
};

void WillGiveBack() {
  if (gives_back) return;
  gives_back = true;
  static thread_local GiveBack give_back;
  (void)give_back;
}

void* AllocateSlowly(int size_class) {
  WillGiveBack();
  Lists& own = lists[size_class];
  own.current = own.spare;
  own.spare = nullptr;
  if (own.current == nullptr) own.current = pool.Take(size_class);
  if (own.current == nullptr) return std::malloc(static_cast<size_t>(size_class) * kUnit);
  own.count = kBatch - 1;
  Block* block = own.current;
  own.current = block->next;
  return block;
}

// The current list is empty or full: another one begins.
void ReleaseSlowly(int size_class, Block* block) {
  WillGiveBack();
  Lists& own = lists[size_class];
  if (own.current != nullptr) {
    if (own.spare != nullptr) pool.Give(size_class, own.spare);
    own.spare = own.current;
  }
  own.current = block;
  own.count = 1;
  block->next = nullptr;
}

}  // namespace

void* AllocateBlock(size_t bytes) {
  if (bytes > kLargestSmallBlock) return std::malloc(bytes);
  const int size_class = std::max<int>(1, static_cast<int>((bytes + kUnit - 1) / kUnit));
  Lists& own = lists[size_class];
  Block* block = own.current;
  if (block == nullptr) return AllocateSlowly(size_class);
  own.current = block->next;
  --own.count;
  return block;
}

void ReleaseBlock(void* released) {
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(released) - range.load(std::memory_order_relaxed);
  if (offset >= kRange) return std::free(released);
  const int size_class = class_of_page[offset >> kPageBits];
  Lists& own = lists[size_class];
  Block* block = static_cast<Block*>(released);
  if (own.current == nullptr || own.count >= kBatch) return ReleaseSlowly(size_class, block);
  block->next = own.current;
  own.current = block;
  ++own.count;
}

}  // namespace isomer
