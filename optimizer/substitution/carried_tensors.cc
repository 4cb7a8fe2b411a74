#include "optimizer/substitution/carried_tensors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "optimizer/substitution/piece_chain.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr int kMostTurns = 6;

class Holder {
 public:
  Holder(const std::vector<Piece>& pieces, CostTables* tables, std::vector<Borders>* borders)
      : pieces_(pieces), tables_(*tables), borders_(*borders) {}

  absl::Status Run(
      const std::function<absl::StatusOr<PlacementSetId>(TensorRef)>& placements_left) {
    for (const Piece& piece : pieces_) {
      for (const Piece::CarriedOut& carried : piece.carried_out) {
        ISOMER_ASSIGN_OR_RETURN(left_[carried.tensor], placements_left(carried.tensor));
      }
    }
    if (left_.empty()) return absl::OkStatus();
    double best_us = kImpossibleUs;
    std::vector<Borders> best = borders_;
    for (int turn = 0; turn < kMostTurns; ++turn) {
      ISOMER_ASSIGN_OR_RETURN(const PieceChain chain, MapAll());
      // In the first iteration carried tensors move for free.
      if (turn > 0) {
        if (chain.us >= best_us) break;
        best_us = chain.us;
        best = borders_;
      }
      if (!Hold(chain)) break;
    }
    borders_ = std::move(best);
    return absl::OkStatus();
  }

 private:
  using Key = std::tuple<uint64_t, Borders>;

  absl::StatusOr<PieceChain> MapAll() {
    mapped_.clear();
    std::vector<const CostTable*> chain;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      std::unique_ptr<PieceMapping>& mapping = mapped_[{pieces_[p].key, borders_[p]}];
      if (mapping == nullptr) {
        ISOMER_ASSIGN_OR_RETURN(
            PieceMapping solved,
            PieceMapping::Solve(pieces_[p], pieces_[p].graph, borders_[p], &tables_));
        mapping = std::make_unique<PieceMapping>(std::move(solved));
      }
      chain.push_back(&mapping->table());
    }
    return ChainOf(chain);
  }

  // Gives every tensor its cheapest placement under the choices of the chain. False: nothing
  // changed.
  bool Hold(const PieceChain& chain) {
    // Cost of each placement, by the set of placements that tensors can be left in.
    std::map<PlacementSetId, std::vector<double>> us;
    // Equal pieces with equal choices cost the same.
    std::map<std::tuple<const PieceMapping*, int, int>, std::vector<int>> picks;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      const Piece& piece = pieces_[p];
      const PieceMapping* mapping = mapped_.at({piece.key, borders_[p]}).get();
      if (mapping->carried_uses().empty()) continue;
      std::vector<int>& pick = picks[{mapping, chain.rows[p], chain.cols[p]}];
      if (pick.empty()) pick = mapping->Picks(chain.rows[p], chain.cols[p]);
      for (const PieceMapping::CarriedUse& use : mapping->carried_uses()) {
        const PlacementSetId left = left_.at(use.is_made ? piece.carried_out[use.carried].tensor
                                                         : piece.carried_in[use.carried].tensor);
        std::vector<double>& sums = us[left];
        sums.resize(tables_.PlacementsOf(left).size(), 0);
        const CostTable& moved = use.is_made ? tables_.EdgeUs(use.set, left, use.gradient)
                                             : tables_.EdgeUs(left, use.set, use.gradient);
        const int chosen = pick[use.node];
        for (int k = 0; k < static_cast<int>(sums.size()); ++k) {
          sums[k] += use.times * (use.is_made ? moved.at(chosen, k) : moved.at(k, chosen));
        }
      }
    }
    std::map<PlacementSetId, PlacementSetId> held;  // a set of one
    for (const auto& [left, sums] : us) {
      const auto least = std::min_element(sums.begin(), sums.end()) - sums.begin();
      held[left] = tables_.Intern({tables_.placement(tables_.PlacementsOf(left)[least])});
    }
    bool changed = false;
    const auto set = [&](TensorRef tensor, size_t place, std::vector<PlacementSetId>* sets) {
      sets->resize(std::max(sets->size(), place + 1), Borders::kNone);
      const auto now = held.find(left_.at(tensor));
      if (now == held.end()) return;  // Nothing moves it.
      changed |= (*sets)[place] != now->second;
      (*sets)[place] = now->second;
    };
    for (size_t p = 0; p < pieces_.size(); ++p) {
      for (size_t c = 0; c < pieces_[p].carried_in.size(); ++c) {
        set(pieces_[p].carried_in[c].tensor, c, &borders_[p].carried_in);
      }
      for (size_t c = 0; c < pieces_[p].carried_out.size(); ++c) {
        set(pieces_[p].carried_out[c].tensor, c, &borders_[p].carried_out);
      }
    }
    return changed;
  }

  const std::vector<Piece>& pieces_;
  CostTables& tables_;
  std::vector<Borders>& borders_;
  std::map<TensorRef, PlacementSetId> left_;
  std::map<Key, std::unique_ptr<PieceMapping>> mapped_;
};

}  // namespace

absl::Status HoldCarried(
    const std::vector<Piece>& pieces,
    const std::function<absl::StatusOr<PlacementSetId>(TensorRef)>& placements_left,
    CostTables* tables, std::vector<Borders>* borders) {
  return Holder(pieces, tables, borders).Run(placements_left);
}

}  // namespace isomer
