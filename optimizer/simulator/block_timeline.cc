#include "optimizer/simulator/block_timeline.h"

#include <algorithm>

namespace isomer {

BlockTimeline::BlockTimeline(int32_t num_blocks, int32_t num_queues, int32_t first_link)
    : num_queues_(num_queues),
      first_link_(first_link),
      blocks_(num_blocks),
      offset_(num_blocks, 0),
      common_offset_((num_blocks + 63) / 64, 0),
      reach_(num_blocks, -1),
      far_reach_((num_blocks + 63) / 64, -1),
      words_((num_blocks + 63) / 64),
      on_queue_(num_queues * words_, 0),
      tail_(num_queues, -1),
      pending_(words_, 0),
      saved_at_(num_blocks, -1),
      exchanged_at_(num_blocks, -1),
      scratch_(num_queues, -1) {}

const BlockTimeline::QueueUse* BlockTimeline::FindUse(int32_t block, int32_t queue) const {
  const std::vector<QueueUse>& uses = blocks_[block].uses;
  return &*std::lower_bound(uses.begin(), uses.end(), queue,
                            [](const QueueUse& use, int32_t q) { return use.queue < q; });
}

int32_t BlockTimeline::NextOnQueue(int32_t queue, int32_t block) const {
  if (tail_[queue] <= block) return -1;
  const uint64_t* set = on_queue_.data() + queue * words_;
  size_t word = (block + 1) / 64;
  uint64_t bits = set[word] & (~uint64_t{0} << ((block + 1) % 64));
  while (bits == 0) bits = set[++word];  // The tail follows.
  return static_cast<int32_t>(word * 64) + __builtin_ctzll(bits);
}

int32_t BlockTimeline::PreviousOnQueue(int32_t queue, int32_t block) const {
  if (block == 0) return -1;
  const uint64_t* set = on_queue_.data() + queue * words_;
  size_t word = (block - 1) / 64;
  uint64_t bits = set[word] & (~uint64_t{0} >> (63 - (block - 1) % 64));
  while (bits == 0) {
    if (word-- == 0) return -1;
    bits = set[word];
  }
  return static_cast<int32_t>(word * 64) + 63 - __builtin_clzll(bits);
}

// Exchanging.

void BlockTimeline::Save(int32_t block) {
  if (saved_at_[block] >= 0) return;
  saved_at_[block] = static_cast<int32_t>(saved_.size());
  const Block& b = blocks_[block];
  saved_.push_back({block, false, {}, b.end, b.first_start, b.last_end});
}

void BlockTimeline::IndexQueues(Block* block) {
  const BlockTasks& tasks = block->tasks;
  block->uses.clear();
  for (int32_t queue : tasks.queues_) {
    if (scratch_[queue] >= 0) continue;
    scratch_[queue] = 0;
    block->uses.push_back({queue, -1, {}});
  }
  const auto by_queue = [](const QueueUse& a, const QueueUse& b) { return a.queue < b.queue; };
  if (!std::is_sorted(block->uses.begin(), block->uses.end(), by_queue)) {
    std::sort(block->uses.begin(), block->uses.end(), by_queue);
  }
  for (size_t k = 0; k < block->uses.size(); ++k) {
    scratch_[block->uses[k].queue] = static_cast<int32_t>(k);
  }
  block->before.resize(tasks.queues_.size());
  for (int32_t t = 0; t < tasks.size(); ++t) {
    for (int32_t e = tasks.tasks_[t].queue_begin; e < tasks.tasks_[t].queue_end; ++e) {
      const int32_t k = scratch_[tasks.queues_[e]];
      QueueUse& use = block->uses[k];
      block->before[e] = use.last < 0 ? ~k : use.last;
      use.last = t;
    }
  }
  for (const QueueUse& use : block->uses) scratch_[use.queue] = -1;
}

void BlockTimeline::LinkQueues(int32_t block, const std::vector<QueueUse>& old) {
  std::vector<QueueUse>& now = blocks_[block].uses;
  const uint64_t bit = uint64_t{1} << (block % 64);
  size_t o = 0, n = 0;
  while (o < old.size() || n < now.size()) {
    const bool in_old = o < old.size() && (n == now.size() || old[o].queue <= now[n].queue);
    const bool in_now = n < now.size() && (o == old.size() || now[n].queue <= old[o].queue);
    const int32_t queue = in_old ? old[o].queue : now[n].queue;
    uint64_t& word = on_queue_[queue * words_ + block / 64];
    TaskRef tail;
    if (in_now) {
      word |= bit;
      tail_[queue] = std::max(tail_[queue], block);
      tail = {block, now[n].last};
      if (in_old) {
        now[n].previous = old[o].previous;
        if (now[n].last == old[o].last) {  // The next block's link is still valid.
          ++o;
          ++n;
          continue;
        }
      } else if (const int32_t before = PreviousOnQueue(queue, block); before >= 0) {
        now[n].previous = {before, FindUse(before, queue)->last};
      }
    } else {
      word &= ~bit;
      tail = old[o].previous;
      if (tail_[queue] == block) tail_[queue] = tail.block;
    }
    if (const int32_t next = NextOnQueue(queue, block); next >= 0) {
      FindUse(next, queue)->previous = tail;
      if (in_old != in_now) Push(next);
    }
    o += in_old;
    n += in_now;
  }
}

// Adds or removes `block` as a user of the blocks that `tasks` depend on.
void BlockTimeline::SetUser(int32_t block, const BlockTasks& tasks, bool uses) {
  std::vector<int32_t> others;
  for (const TaskRef& dep : tasks.deps_) {
    if (dep.block != block && (others.empty() || others.back() != dep.block)) {
      others.push_back(dep.block);
    }
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  for (int32_t other : others) {
    std::vector<int32_t>& users = blocks_[other].users;
    const auto at = std::lower_bound(users.begin(), users.end(), block);
    if (uses) {
      users.insert(at, block);
    } else {
      users.erase(at);
    }
    reach_[other] = users.empty() ? -1 : users.back();
    far_reach_[other / 64] = std::max(far_reach_[other / 64], reach_[other]);
  }
}

void BlockTimeline::Exchange(int32_t block, BlockTasks tasks) {
  Block& b = blocks_[block];
  SetUser(block, b.tasks, false);
  num_tasks_ += tasks.size() - b.tasks.size();
  std::swap(b.tasks, tasks);
  SetUser(block, b.tasks, true);
  const std::vector<QueueUse> old = std::move(b.uses);
  b.uses = {};
  IndexQueues(&b);
  LinkQueues(block, old);
  b.end.resize(b.tasks.size());
}

void BlockTimeline::Update(std::vector<Change> changes) {
  for (Change& change : changes) {
    Block& block = blocks_[change.block];
    if (block.tasks == change.tasks) continue;
    Before before{true, {}, block.last_end};
    for (const QueueUse& use : block.uses) {
      before.queues.push_back({use.queue, FreeIn(block, block.end, use.last, use.queue)});
    }
    Save(change.block);
    SavedBlock& saved = saved_[saved_at_[change.block]];
    if (!saved.exchanged) {
      saved.exchanged = true;
      saved.tasks = block.tasks;
    }
    Exchange(change.block, std::move(change.tasks));
    exchanged_at_[change.block] = static_cast<int32_t>(exchanged_.size());
    exchanged_.push_back(std::move(before));
    Push(change.block);
  }
  Run();
  for (const Change& change : changes) exchanged_at_[change.block] = -1;
  exchanged_.clear();
}

void BlockTimeline::Commit() {
  for (const SavedBlock& saved : saved_) saved_at_[saved.block] = -1;
  saved_.clear();
  noted_.clear();
}

void BlockTimeline::Rollback() {
  for (SavedBlock& saved : saved_) {
    if (saved.exchanged) Exchange(saved.block, std::move(saved.tasks));
  }
  for (SavedBlock& saved : saved_) {
    Block& block = blocks_[saved.block];
    block.end = std::move(saved.end);
    block.first_start = saved.first_start;
    block.last_end = saved.last_end;
  }
  for (const auto& [from, shift] : noted_) AddToOffsets(from, -shift);
  std::fill(pending_.begin(), pending_.end(), 0);  // left over from exchanges
  Commit();
}

// Simulating.

void BlockTimeline::Run() {
  run_width_ = 0;
  believed_width_ = std::max(1, num_queues_ / 8);
  for (size_t word = 0; word < words_; ++word) {
    while (pending_[word] != 0) {
      const int bit = __builtin_ctzll(pending_[word]);
      pending_[word] &= pending_[word] - 1;
      Visit(static_cast<int32_t>(word * 64) + bit);
    }
  }
}

void BlockTimeline::AddToOffsets(int32_t from, Picoseconds shift) {
  const size_t word = (from + 63) / 64;
  const size_t end = std::min(word * 64, offset_.size());
  for (size_t b = from; b < end; ++b) offset_[b] += shift;
  for (size_t w = word; w < common_offset_.size(); ++w) common_offset_[w] += shift;
}

void BlockTimeline::Simulate(int32_t block) {
  Block& b = blocks_[block];
  const BlockTasks& tasks = b.tasks;
  const Picoseconds offset = Offset(block);
  b.first_start = INT64_MAX / 2;  // Far off, but offsets can be added.
  b.last_end = INT64_MIN / 2;
  for (int32_t t = 0; t < tasks.size(); ++t) {
    const BlockTasks::Item& item = tasks.tasks_[t];
    Picoseconds start = 0;
    for (int32_t e = item.queue_begin; e < item.queue_end; ++e) {
      const int32_t before = b.before[e], queue = tasks.queues_[e];
      start = std::max(start, before >= 0 ? FreeIn(b, b.end, before, queue) + offset
                                          : Free(b.uses[~before].previous, queue));
    }
    for (int32_t d = item.dep_begin; d < item.dep_end; ++d) {
      start = std::max(start, End(tasks.deps_[d]));
    }
    b.end[t] = start + item.duration - offset;
    b.first_start = std::min(b.first_start, start - offset);
    b.last_end = std::max(b.last_end, b.end[t]);
  }
  simulated_tasks_ += tasks.size();
}

void BlockTimeline::Visit(int32_t block) {
  Block& b = blocks_[block];
  const Picoseconds offset = Offset(block);
  Before before{exchanged_at_[block] >= 0, {}, b.last_end + offset};
  std::vector<Picoseconds> old_end;
  if (before.exchanged) {
    std::swap(before.queues, exchanged_[exchanged_at_[block]].queues);
    for (QueueEnd& queue : before.queues) queue.end += offset;
  } else {
    Save(block);
    old_end = b.end;
  }
  Simulate(block);
  if (!before.exchanged) {
    if (b.end == old_end) return;
    for (const QueueUse& use : b.uses) {
      before.queues.push_back({use.queue, FreeIn(b, old_end, use.last, use.queue) + offset});
    }
  }
  const Picoseconds shift = CommonShift(block, before);
  const int64_t width = static_cast<int64_t>(b.uses.size());
  run_width_ = shift == run_shift_ ? run_width_ + width : width;
  run_shift_ = shift;
  if (shift != 0 && run_width_ >= believed_width_) {
    NoteShift(block, shift, before);
  } else {
    PushAffected(block, before);
  }
}

Picoseconds BlockTimeline::CommonShift(int32_t block, const Before& before) const {
  const Block& b = blocks_[block];
  Picoseconds common = 0;
  int64_t count = 0, agree = 0;
  // Majority vote (Boyer, Moore 1981), then a count.
  for (int pass = 0; pass < 2; ++pass) {
    size_t o = 0;
    for (const QueueUse& use : b.uses) {
      while (o < before.queues.size() && before.queues[o].queue < use.queue) ++o;
      if (o == before.queues.size() || before.queues[o].queue != use.queue) continue;
      const Picoseconds shift = Free({block, use.last}, use.queue) - before.queues[o].end;
      if (pass == 1) {
        agree += shift == common;
      } else if (count == 0) {
        common = shift;
        count = 1;
      } else {
        count += shift == common ? 1 : -1;
      }
    }
  }
  return 2 * agree > static_cast<int64_t>(b.uses.size()) ? common : 0;
}

void BlockTimeline::PushAffected(int32_t block, const Before& before) {
  const Block& b = blocks_[block];
  size_t o = 0;
  for (const QueueUse& use : b.uses) {
    while (o < before.queues.size() && before.queues[o].queue < use.queue) ++o;
    // Queues newly used, or no longer, were handled by Exchange.
    if (o == before.queues.size() || before.queues[o].queue != use.queue) continue;
    const Picoseconds old_end = before.queues[o].end;
    const Picoseconds new_end = Free({block, use.last}, use.queue);
    if (old_end == new_end) continue;
    const int32_t next = NextOnQueue(use.queue, block);
    if (next < 0) continue;
    const Picoseconds first = FirstStart(next);
    if (old_end >= first || new_end > first) Push(next);
  }
  const Picoseconds last_end = b.last_end + Offset(block);
  for (int32_t user : b.users) {
    const Picoseconds first = FirstStart(user);
    if (before.last_end >= first || last_end > first) Push(user);
  }
}

// Shifts all blocks after `block`; pushes those that may not follow the shift.
void BlockTimeline::NoteShift(int32_t block, Picoseconds shift, const Before& before) {
  AddToOffsets(block + 1, shift);
  noted_.push_back({block + 1, shift});
  run_width_ = 0;
  believed_width_ *= 2;  // If two shifts alternate, one stays recorded.
  // An input that is before the earliest start, both previously and now, is not binding.
  auto decides = [&](Picoseconds end, int32_t next) {
    const Picoseconds first = FirstStart(next);
    return end >= std::min(first, first - shift);
  };
  const Block& b = blocks_[block];
  size_t o = 0, n = 0;
  for (int32_t queue = 0; queue < num_queues_; ++queue) {
    const int32_t next = NextOnQueue(queue, block);
    if (next < 0) continue;
    while (o < before.queues.size() && before.queues[o].queue < queue) ++o;
    while (n < b.uses.size() && b.uses[n].queue < queue) ++n;
    const bool was = o < before.queues.size() && before.queues[o].queue == queue;
    const bool is = n < b.uses.size() && b.uses[n].queue == queue;
    if (was && is) {
      const Picoseconds end = Free({block, b.uses[n].last}, queue);
      if (end - before.queues[o].end == shift) continue;
      if (decides(std::max(end, before.queues[o].end), next)) Push(next);
    } else if (is || decides(Free(FindUse(next, queue)->previous, queue), next)) {
      Push(next);
    }
  }
  for (int32_t first = 0; first <= block; first += 64) {
    if (far_reach_[first / 64] <= block) continue;
    const int32_t last = std::min(first + 64, num_blocks());
    far_reach_[first / 64] = *std::max_element(reach_.begin() + first, reach_.begin() + last);
    for (int32_t from = first; from < last && from <= block; ++from) {
      if (reach_[from] <= block) continue;
      const Picoseconds last_end = std::max(blocks_[from].last_end + Offset(from),
                                            from == block ? before.last_end : INT64_MIN / 2);
      const std::vector<int32_t>& users = blocks_[from].users;
      for (auto user = std::upper_bound(users.begin(), users.end(), block); user != users.end();
           ++user) {
        if (decides(last_end, *user)) Push(*user);
      }
    }
  }
}

void BlockTimeline::Assemble(TaskList* list) const {
  list->Clear(first_link_);
  std::vector<int32_t> first;
  first.reserve(blocks_.size());
  std::vector<int32_t> deps;
  int32_t count = 0;
  for (const Block& block : blocks_) {
    const BlockTasks& tasks = block.tasks;
    first.push_back(count);
    count += tasks.size();
    for (const BlockTasks::Item& item : tasks.tasks_) {
      deps.clear();
      for (int32_t d = item.dep_begin; d < item.dep_end; ++d) {
        deps.push_back(first[tasks.deps_[d].block] + tasks.deps_[d].index);
      }
      list->Add(item.duration,
                absl::MakeConstSpan(tasks.queues_)
                    .subspan(item.queue_begin, item.queue_end - item.queue_begin),
                deps, item.beyond_links);
    }
  }
}

}  // namespace isomer
