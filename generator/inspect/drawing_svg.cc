// A rule as a picture: both sides in layers, inputs above, every node one layer below the lowest of
// its operands.
#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "generator/inspect/drawing.h"

namespace isomer {
namespace {

constexpr int kBoxHeight = 26, kLayerHeight = 58, kGap = 18, kMargin = 20, kTitle = 26;
constexpr double kLetterWidth = 6.6;  // of 11 px monospace

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

struct Box {
  std::string label;
  const char* fill;
  int layer = 0;
  double x = 0, width = 0;  // x: the middle
  std::vector<int> from;    // boxes
};

class Side {
 public:
  explicit Side(const Pattern& pattern) {
    for (const PatternNode& node : pattern.nodes) {
      std::vector<int> from;
      for (PatternRef ref : node.inputs) from.push_back(BoxOf(ref));
      nodes_.push_back(
          Add(NodeText(node), IsParallel(node.kind) ? "#dbe9f6" : "#ffffff", std::move(from)));
    }
    for (size_t o = 0; o < pattern.outputs.size(); ++o) {
      Add(absl::StrCat("y", o), "#f3ead8", {BoxOf(pattern.outputs[o])});
    }
    Place();
  }

  double width() const { return width_; }
  int height() const { return layers_ * kLayerHeight; }

  void Draw(double left, std::string* svg) const {
    auto top = [](const Box& box) { return kMargin + kTitle + box.layer * kLayerHeight; };
    for (const Box& box : boxes_) {
      for (int from : box.from) {
        absl::StrAppendFormat(
            svg, "<line x1=\"%.0f\" y1=\"%d\" x2=\"%.0f\" y2=\"%d\" marker-end=\"url(#arrow)\"/>\n",
            left + boxes_[from].x, top(boxes_[from]) + kBoxHeight, left + box.x, top(box) - 2);
      }
    }
    for (const Box& box : boxes_) {
      absl::StrAppendFormat(svg,
                            "<rect x=\"%.0f\" y=\"%d\" width=\"%.0f\" height=\"%d\" rx=\"4\" "
                            "fill=\"%s\"/>\n<text x=\"%.0f\" y=\"%d\">%s</text>\n",
                            left + box.x - box.width / 2, top(box), box.width, kBoxHeight, box.fill,
                            left + box.x, top(box) + kBoxHeight / 2 + 4, Escaped(box.label));
    }
  }

 private:
  int Add(const std::string& label, const char* fill, std::vector<int> from) {
    Box box{label,          fill, 0, 0, kLetterWidth * static_cast<double>(label.size()) + 16,
            std::move(from)};
    for (int b : box.from) box.layer = std::max(box.layer, boxes_[b].layer + 1);
    boxes_.push_back(std::move(box));
    return static_cast<int>(boxes_.size()) - 1;
  }

  int BoxOf(PatternRef ref) {
    if (ref.node >= 0) return nodes_[ref.node];
    const auto known = inputs_.find(ref.index);
    if (known != inputs_.end()) return known->second;
    return inputs_[ref.index] = Add(absl::StrCat("x", ref.index), "#e4f2e1", {});
  }

  // Boxes of a layer side by side, in order; layers about one middle.
  void Place() {
    for (const Box& box : boxes_) layers_ = std::max(layers_, box.layer + 1);
    std::vector<double> widths(layers_, -kGap);
    for (Box& box : boxes_) {
      widths[box.layer] += kGap;
      box.x = widths[box.layer] + box.width / 2;
      widths[box.layer] += box.width;
    }
    width_ = *std::max_element(widths.begin(), widths.end());
    for (Box& box : boxes_) box.x += (width_ - widths[box.layer]) / 2;
  }

  std::vector<Box> boxes_;
  std::vector<int> nodes_;     // box of each pattern node
  std::map<int, int> inputs_;  // box of each rule input
  int layers_ = 0;
  double width_ = 0;
};

}  // namespace

std::string RuleToSvg(const Rule& rule) {
  const Side source(rule.source), target(rule.target);
  constexpr double kBetween = 70;
  const double width = 2 * kMargin + source.width() + kBetween + target.width();
  const int height = 2 * kMargin + kTitle + std::max(source.height(), target.height());
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" "
      "font-family=\"monospace\" font-size=\"11\" text-anchor=\"middle\">\n"
      "<title>%s</title>\n<defs><marker id=\"arrow\" markerWidth=\"8\" markerHeight=\"8\" "
      "refX=\"7\" refY=\"3\" orient=\"auto\"><path d=\"M0,0 L7,3 L0,6 z\"/></marker></defs>\n"
      "<text x=\"%.0f\" y=\"%d\">%s</text>\n<g stroke=\"#444\" stroke-width=\"0.8\">\n",
      width, height, Escaped(rule.ToString()), kMargin + source.width() + kBetween / 2,
      kMargin + kTitle + kLayerHeight, rule.reversible ? "&#8596;" : "&#8594;");
  std::string sides;
  source.Draw(kMargin, &sides);
  target.Draw(kMargin + source.width() + kBetween, &sides);
  // Text is filled, not outlined.
  sides = absl::StrReplaceAll(sides, {{"<text ", "<text stroke=\"none\" "}});
  return absl::StrCat(svg, sides, "</g>\n</svg>\n");
}

}  // namespace isomer
