// Predicted against published: the bus bandwidth of NCCL's all-reduce on one DGX H200.
//
//   build/release/bench/collectives [--svg=bench/results/collectives.svg]
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_format.h"
#include "optimizer/cost/collective_cost.h"
#include "pcg/support/file.h"

ABSL_FLAG(std::string, svg, "", "file for a plot of both");

namespace isomer {
namespace {

struct Point {
  int64_t bytes;
  double gb_per_s;  // bus bandwidth
};

constexpr int kDevices = 8;
// Measured by nccl-tests on 8 x H200. Of 32 KiB, the time is published: 18 us.
constexpr Point kPublished[] = {{int64_t{1} << 20, 75},
                                {int64_t{16} << 20, 256},
                                {int64_t{64} << 20, 369},
                                {int64_t{1} << 30, 466}};
constexpr double kPublishedUsOf32KiB = 18;

double BusBandwidth(int64_t bytes, double us) {
  return 2. * (kDevices - 1) / kDevices * static_cast<double>(bytes) / us / 1e3;
}

class Plot {
 public:
  double X(int64_t bytes) const { return 60 + 34 * (std::log2(static_cast<double>(bytes)) - 15); }
  double Y(double gb_per_s) const { return 330 - 0.56 * gb_per_s; }
  void Add(const std::string& element) { body_ += element + "\n"; }

  void Axes() {
    for (int g = 0; g <= 500; g += 100) {
      Add(absl::StrFormat("<line x1=\"60\" y1=\"%.1f\" x2=\"640\" y2=\"%.1f\" stroke=\"#d9dee3\"/>",
                          Y(g), Y(g)));
      Add(absl::StrFormat("<text x=\"52\" y=\"%.1f\" text-anchor=\"end\">%d</text>", Y(g) + 4, g));
    }
    const std::pair<int, const char*> sizes[] = {{15, "32 KiB"},  {18, "256 KiB"}, {20, "1 MiB"},
                                                 {22, "4 MiB"},   {24, "16 MiB"},  {26, "64 MiB"},
                                                 {28, "256 MiB"}, {30, "1 GiB"}};
    for (const auto& [log2, name] : sizes) {
      Add(absl::StrFormat("<text x=\"%.1f\" y=\"348\" text-anchor=\"middle\">%s</text>",
                          X(int64_t{1} << log2), name));
    }
    Add("<text x=\"12\" y=\"20\" font-size=\"13\" font-weight=\"bold\">All-reduce on 8 x H200: bus "
        "bandwidth in GB/s, 2 (n-1)/n bytes / time</text>");
  }

  std::string Document() const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"660\" height=\"400\" viewBox=\"0 0 "
           "660 400\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" "
           "fill=\"#1d2329\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
           body_ + "</svg>\n";
  }

 private:
  std::string body_;
};

std::string Draw(const CollectiveCost& cost, const std::vector<int32_t>& devices) {
  Plot plot;
  plot.Axes();
  std::string line;
  for (double log2 = 15; log2 <= 31.01; log2 += 0.25) {
    const auto bytes = static_cast<int64_t>(std::exp2(log2));
    const double us = cost.Us(Collective::kAllReduce, bytes, devices);
    line += absl::StrFormat("%.1f,%.1f ", plot.X(bytes), plot.Y(BusBandwidth(bytes, us)));
  }
  plot.Add("<polyline fill=\"none\" stroke=\"#2b6cb0\" stroke-width=\"2\" points=\"" + line +
           "\"/>");
  std::vector<Point> points(std::begin(kPublished), std::end(kPublished));
  points.push_back({32 << 10, BusBandwidth(32 << 10, kPublishedUsOf32KiB)});
  for (const Point& point : points) {
    const double x = plot.X(point.bytes);
    plot.Add(
        absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                        "stroke=\"#c05621\"/>",
                        x, plot.Y(0.85 * point.gb_per_s), x, plot.Y(1.15 * point.gb_per_s)));
    plot.Add(absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#c05621\"/>", x,
                             plot.Y(point.gb_per_s)));
  }
  plot.Add(
      "<line x1=\"60\" y1=\"376\" x2=\"84\" y2=\"376\" stroke=\"#2b6cb0\" "
      "stroke-width=\"2\"/><text x=\"90\" y=\"380\">predicted</text>");
  plot.Add(
      "<circle cx=\"190\" cy=\"376\" r=\"4\" fill=\"#c05621\"/><text x=\"202\" y=\"380\">"
      "published, with 15 % to either side</text>");
  return plot.Document();
}

int Main() {
  const auto machine = LoadMachine("dgx_h200");
  if (!machine.ok()) {
    std::fprintf(stderr, "%s\n", std::string(machine.status().message()).c_str());
    return 2;
  }
  const CollectiveCost cost(*machine);
  std::vector<int32_t> devices(kDevices);
  std::iota(devices.begin(), devices.end(), 0);
  std::printf("all-reduce on 8 x H200   published            predicted            error\n");
  const auto print = [&](int64_t bytes, double published_us) {
    const CollectiveLine line = cost.Choice(Collective::kAllReduce, bytes, devices);
    const double us = line.Us(bytes);
    std::printf("%8lld KiB  %9.1f us %6.1f GB/s  %9.1f us %6.1f GB/s  %+5.1f %%  %s, %s\n",
                static_cast<long long>(bytes >> 10), published_us,
                BusBandwidth(bytes, published_us), us, BusBandwidth(bytes, us),
                100 * (us / published_us - 1), line.algorithm, line.protocol);
  };
  print(32 << 10, kPublishedUsOf32KiB);
  for (const Point& point : kPublished) {
    print(point.bytes, BusBandwidth(point.bytes, 1) / point.gb_per_s);
  }
  const std::string svg = absl::GetFlag(FLAGS_svg);
  if (svg.empty()) return 0;
  const absl::Status written = WriteFileAtomically(svg, Draw(cost, devices));
  if (!written.ok()) std::fprintf(stderr, "%s\n", std::string(written.message()).c_str());
  return written.ok() ? 0 : 2;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return isomer::Main();
}
