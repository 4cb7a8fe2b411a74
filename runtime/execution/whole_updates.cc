#include "runtime/execution/whole_updates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/update.h"
#include "runtime/execution/orthogonalize.h"

namespace isomer {
namespace {

// Of a matrix: how many times an update is that of orthonormal rows or columns.
double ScaleOfMatrix(int64_t rows, int64_t columns, bool matches_adam) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(columns);
  return matches_adam ? 0.2 * std::sqrt(std::max(m, n)) : std::sqrt(std::max(1.0, m / n));
}

// As an update of LAMB has it.
double TrustRatio(const LambSquares& squares) {
  const double weight = std::sqrt(squares.weights), step = std::sqrt(squares.steps);
  return weight > 0 && step > 0 ? weight / step : 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WholeUpdates>> WholeUpdates::Make(
    const Graph& graph, const Schedule& schedule, const std::set<std::string>& matrices,
    const OptimizerSettings& settings) {
  std::unique_ptr<WholeUpdates> updates(new WholeUpdates(graph, schedule));
  std::map<TensorRef, const Schedule::HostTensor*> parameter_of;
  std::set<BufferId> gradients_once;
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (!parameter.trainable) continue;
    parameter_of[parameter.tensor] = &parameter;
    const std::vector<BufferId> distinct = schedule.DistinctGradients(parameter);
    gradients_once.insert(distinct.begin(), distinct.end());
  }
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.kind != TaskKind::kUpdate) continue;
    for (int32_t s = 0; s < task.segments; ++s) {
      const TensorRef tensor = schedule.buffers[task.writes[s]].tensor;
      ISOMER_RETURN_IF_ERROR(
          updates->AddPart(static_cast<int32_t>(t), s, *parameter_of.at(tensor), gradients_once));
    }
  }
  ISOMER_RETURN_IF_ERROR(updates->SetWeights(matrices, settings));
  return updates;
}

absl::Status WholeUpdates::AddPart(int32_t t, int32_t segment,
                                   const Schedule::HostTensor& parameter,
                                   const std::set<BufferId>& gradients_once) {
  const std::optional<Arrangement> arrangement = Arrangement::Of(graph_, parameter);
  if (!arrangement.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat(graph_.Label(parameter.tensor.node), ": what devices have of '",
                     NameOf(graph_, parameter), "' is not parts of weights, which --optimizer=",
                     OptimizerName(schedule_.options.update.optimizer), " updates as a whole"));
  }
  const Task& task = schedule_.tasks[t];
  Part part{.task = t, .segment = segment, .device = task.devices[0]};
  part.counts = gradients_once.contains(task.reads[task.segments + segment]);
  arrangement->ForEachLine(schedule_.buffers[task.writes[segment]].box, [&](const LeafLine& line) {
    part.lines.push_back(line);
    part.elements[line.leaf] += line.count;
  });
  // Of one weight, side by side, one piece.
  std::vector<LeafLine> by_place = part.lines;
  std::sort(by_place.begin(), by_place.end(),
            [](const LeafLine& a, const LeafLine& b) { return a.place < b.place; });
  for (const LeafLine& line : by_place) {
    if (!part.pieces.empty() && part.weights.back() == line.leaf &&
        part.pieces.back().place + part.pieces.back().count == line.place) {
      part.pieces.back().count += line.count;
      continue;
    }
    part.pieces.push_back({.place = line.place, .count = line.count});
    part.weights.push_back(line.leaf);
  }
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

bool WholeUpdates::IsWhole(const Part& part, NodeId weight) const {
  const auto found = part.elements.find(weight);
  return found != part.elements.end() && found->second == weights_.at(weight).elements;
}

absl::Status WholeUpdates::SetWeights(const std::set<std::string>& matrices,
                                      const OptimizerSettings& settings) {
  std::set<int32_t> devices;
  for (const Part& part : parts_) {
    devices.insert(part.device);
    for (const auto& [id, elements] : part.elements) {
      const Node& leaf = graph_.node(id);
      const std::vector<int64_t> sizes = leaf.outputs[0].Sizes();
      Weight& weight = weights_[id];
      weight.elements = leaf.outputs[0].NumElements();
      weight.is_matrix = matrices.contains(leaf.name);
      if (!weight.is_matrix) continue;
      if (sizes.size() != 2) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--muon: '", leaf.name, "' has ", sizes.size(), " dims; it is for weights of two"));
      }
      weight.rows = sizes[0];
      weight.columns = sizes[1];
    }
  }
  // Owners take turns, by the order of the graph.
  auto next = devices.begin();
  for (auto& [id, weight] : weights_) {
    const NodeId leaf = id;
    const bool is_in_parts = std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
      return part.elements.contains(leaf) && !IsWhole(part, leaf);
    });
    if (!weight.is_matrix || !is_in_parts) continue;
    weight.owner = *next;
    if (++next == devices.end()) next = devices.begin();
  }
  if (TraitsOf(schedule_.options.update.optimizer).needs != UpdateNeeds::kMatrix) {
    return absl::OkStatus();
  }
  for (Part& part : parts_) {
    for (size_t p = 0; p < part.pieces.size(); ++p) {
      const Weight& weight = weights_.at(part.weights[p]);
      part.pieces[p].is_direction = weight.is_matrix;
      part.pieces[p].factor =
          weight.is_matrix ? ScaleOfMatrix(weight.rows, weight.columns, settings.matches_adam)
                           : settings.adam_rate;
    }
  }
  return absl::OkStatus();
}

absl::Status WholeUpdates::Prepare(Executor* executor, ControlPlane* control) const {
  const UpdateNeeds needs = TraitsOf(schedule_.options.update.optimizer).needs;
  return needs == UpdateNeeds::kNorms ? PrepareNorms(executor, control)
                                      : PrepareMatrices(executor, control);
}

absl::Status WholeUpdates::PrepareNorms(Executor* executor, ControlPlane* control) const {
  const UpdateRule& rule = executor->rule();
  const UpdateFactors at_one = executor->FactorsAt(/*learning_rate=*/1);
  // Of each part that counts, by piece.
  std::vector<LambSquares> own;
  for (const Part& part : parts_) {
    if (part.device != executor->device() || !part.counts) continue;
    const Executor::Operands operands = executor->OperandsOf(part.task, part.segment);
    for (const UpdatePiece& piece : part.pieces) {
      const Executor::Operands of = operands.From(piece.place);
      UpdateRule decaying = rule;
      decaying.decays = of.decays;
      own.push_back(
          SquaresOfLamb(decaying, at_one, of.gradient, piece.count, of.weights, of.states));
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                          control->Gather({reinterpret_cast<const char*>(own.data()),
                                           own.size() * sizeof(LambSquares)}));
  std::vector<size_t> next(all.size(), 0);
  std::map<NodeId, LambSquares> sums;
  for (const Part& part : parts_) {
    if (!part.counts) continue;
    for (NodeId weight : part.weights) {
      LambSquares squares;
      const std::string& bytes = all[part.device];
      const size_t at = next[part.device]++ * sizeof(LambSquares);
      if (at + sizeof(LambSquares) > bytes.size()) {
        return absl::InternalError(
            absl::StrCat("device ", part.device, " has sums of too few weights"));
      }
      std::memcpy(&squares, bytes.data() + at, sizeof(LambSquares));
      sums[weight].weights += squares.weights;
      sums[weight].steps += squares.steps;
    }
  }
  for (const Part& part : parts_) {
    if (part.device != executor->device()) continue;
    std::vector<UpdatePiece> pieces = part.pieces;
    for (size_t p = 0; p < pieces.size(); ++p) {
      pieces[p].factor = TrustRatio(sums[part.weights[p]]);
    }
    executor->SetPieces(part.task, part.segment, std::move(pieces));
  }
  return absl::OkStatus();
}

absl::Status WholeUpdates::PrepareMatrices(Executor* executor, ControlPlane* control) const {
  const UpdateFactors factors = executor->FactorsAt(/*learning_rate=*/1);
  for (const Part& part : parts_) {
    if (part.device != executor->device()) continue;
    executor->SetPieces(part.task, part.segment, part.pieces);
    const Executor::Operands operands = executor->OperandsOf(part.task, part.segment);
    for (const UpdatePiece& piece : part.pieces) {
      if (!piece.is_direction) continue;
      const Executor::Operands of = operands.From(piece.place);
      AdvanceMomentum(executor->rule(), factors, of.gradient, piece.count, of.states[0],
                      of.states[1]);
    }
    for (const auto& [id, elements] : part.elements) {
      const Weight& weight = weights_.at(id);
      if (!weight.is_matrix || weight.owner >= 0) continue;
      std::vector<float> matrix(weight.elements);
      const NodeId leaf = id;
      const auto for_each = [&](auto f) {
        for (const LeafLine& line : part.lines) {
          if (line.leaf != leaf) continue;
          for (int64_t i = 0; i < line.count; ++i) {
            f(matrix[line.first + i * line.stride], operands.states[1][line.place + i]);
          }
        }
      };
      for_each([](float& element, const float& state) { element = state; });
      ISOMER_RETURN_IF_ERROR(Orthogonalize(weight.rows, weight.columns, matrix.data()));
      for_each([](const float& element, float& state) { state = element; });
    }
  }
  return Exchange(executor, control);
}

// Parts of matrices, to their owners and back.
absl::Status WholeUpdates::Exchange(Executor* executor, ControlPlane* control) const {
  const int32_t self = executor->device();
  // What is sent, in the same order by all: each part of a matrix that none has whole.
  struct Piece {
    const Part* part;
    NodeId leaf;
    const Weight* weight;
    std::vector<float> numbers;
  };
  std::vector<Piece> pieces;
  for (const auto& [id, weight] : weights_) {
    if (weight.owner < 0) continue;
    for (const Part& part : parts_) {
      if (part.elements.contains(id) && (part.device == self || weight.owner == self)) {
        pieces.push_back({&part, id, &weight, {}});
      }
    }
  }
  if (std::none_of(weights_.begin(), weights_.end(),
                   [](const auto& entry) { return entry.second.owner >= 0; })) {
    return absl::OkStatus();
  }
  const auto for_each_line = [](const Piece& piece, auto f) {
    int64_t at = 0;
    for (const LeafLine& line : piece.part->lines) {
      if (line.leaf != piece.leaf) continue;
      f(line, at);
      at += line.count;
    }
  };
  const auto bytes_of = [](const Piece& piece) {
    return static_cast<int64_t>(piece.numbers.size() * sizeof(float));
  };
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (Piece& piece : pieces) {
    piece.numbers.resize(piece.part->elements.at(piece.leaf));
    if (piece.part->device == self) {
      const float* states = executor->OperandsOf(piece.part->task, piece.part->segment).states[1];
      for_each_line(piece, [&](const LeafLine& line, int64_t at) {
        std::copy_n(states + line.place, line.count, piece.numbers.data() + at);
      });
    }
    if (!piece.part->counts || piece.part->device == piece.weight->owner) continue;
    if (piece.weight->owner == self) {
      receives.push_back({piece.part->device, piece.numbers.data(), bytes_of(piece)});
    } else {
      sends.push_back({piece.weight->owner, piece.numbers.data(), bytes_of(piece)});
    }
  }
  ISOMER_RETURN_IF_ERROR(control->Exchange(sends, receives));
  sends.clear();
  receives.clear();
  for (size_t p = 0; p < pieces.size();) {
    size_t end = p;
    while (end < pieces.size() && pieces[end].leaf == pieces[p].leaf) ++end;
    const Weight& weight = *pieces[p].weight;
    std::vector<float> matrix(weight.owner == self ? weight.elements : 0);
    const auto for_each_number = [&](Piece& piece, auto f) {
      for_each_line(piece, [&](const LeafLine& line, int64_t at) {
        for (int64_t i = 0; i < line.count; ++i) {
          f(matrix[line.first + i * line.stride], piece.numbers[at + i]);
        }
      });
    };
    if (weight.owner == self) {
      for (size_t q = p; q < end; ++q) {
        if (!pieces[q].part->counts) continue;
        for_each_number(pieces[q], [](float& element, float number) { element = number; });
      }
      ISOMER_RETURN_IF_ERROR(Orthogonalize(weight.rows, weight.columns, matrix.data()));
    }
    for (; p < end; ++p) {
      Piece& piece = pieces[p];
      if (weight.owner == self) {
        for_each_number(piece, [](float element, float& number) { number = element; });
      }
      if (piece.part->device == weight.owner) continue;
      if (weight.owner == self) {
        sends.push_back({piece.part->device, piece.numbers.data(), bytes_of(piece)});
      } else {
        receives.push_back({weight.owner, piece.numbers.data(), bytes_of(piece)});
      }
    }
  }
  ISOMER_RETURN_IF_ERROR(control->Exchange(sends, receives));
  for (const Piece& piece : pieces) {
    if (piece.part->device != self) continue;
    float* states = executor->OperandsOf(piece.part->task, piece.part->segment).states[1];
    for_each_line(piece, [&](const LeafLine& line, int64_t at) {
      std::copy_n(piece.numbers.data() + at, line.count, states + line.place);
    });
  }
  return absl::OkStatus();
}

}  // namespace isomer
