#include "pcg/support/small_blocks.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace isomer {
namespace {

struct Held {
  unsigned char* block;
  size_t bytes;
  unsigned char mark;
};

Held Hold(size_t bytes, unsigned char mark) {
  Held held{static_cast<unsigned char*>(AllocateBlock(bytes)), bytes, mark};
  std::memset(held.block, mark, bytes);
  return held;
}

bool IsIntact(const Held& held) {
  for (size_t i = 0; i < held.bytes; ++i) {
    if (held.block[i] != held.mark) return false;
  }
  return true;
}

TEST(SmallBlocks, HoldWhatIsAskedForAtAlignedAddresses) {
  for (size_t bytes = 0; bytes <= 2 * kLargestSmallBlock; ++bytes) {
    void* block = AllocateBlock(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u);
    std::memset(block, 0xab, bytes);
    ReleaseBlock(block);
  }
  ReleaseBlock(nullptr);
}

TEST(SmallBlocks, NeverOverlapWhileSizesComeAndGoAtRandom) {
  std::mt19937_64 random(1);
  std::vector<Held> held;
  for (int i = 0; i < 100000; ++i) {
    if (held.size() < 2000 || random() % 2 == 0) {
      held.push_back(Hold(random() % 1500, static_cast<unsigned char>(random())));
      continue;
    }
    std::swap(held[random() % held.size()], held.back());
    ASSERT_TRUE(IsIntact(held.back()));
    ReleaseBlock(held.back().block);
    held.pop_back();
  }
  for (const Held& h : held) {
    ASSERT_TRUE(IsIntact(h));
    ReleaseBlock(h.block);
  }
}

// Searches hand plans to threads that predict them and end.
TEST(SmallBlocks, ReleasedByOtherThreadsAreUsedAgain) {
  std::set<void*> addresses;
  for (int round = 0; round < 20; ++round) {
    std::vector<Held> held;
    for (int i = 0; i < 5000; ++i) held.push_back(Hold(48, static_cast<unsigned char>(i)));
    for (const Held& h : held) addresses.insert(h.block);
    std::thread([&held] {
      for (const Held& h : held) {
        EXPECT_TRUE(IsIntact(h));
        ReleaseBlock(h.block);
      }
    }).join();
  }
  EXPECT_LT(addresses.size(), 2u * 5000);
}

TEST(SmallBlocks, ThreadsAtTheSameTimeDoNotShareThem) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::mt19937_64 random(t);
      std::vector<Held> held;
      for (int i = 0; i < 20000; ++i) {
        held.push_back(Hold(random() % 200, static_cast<unsigned char>(t + 1)));
        if (held.size() < 600) continue;
        for (const Held& h : held) {
          EXPECT_TRUE(IsIntact(h));
          ReleaseBlock(h.block);
        }
        held.clear();
      }
      for (const Held& h : held) ReleaseBlock(h.block);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace isomer
