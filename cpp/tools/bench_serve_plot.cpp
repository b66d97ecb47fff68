// Draws the results of `zinc-rt bench serve`: four plots in one self-contained SVG file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/bench_serve.h"
#include "zinc_rt/version.h"

namespace zinc_rt::tools {
namespace {

// Colours that people with colour blindness can distinguish.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
constexpr const char* kFailure = "#c00000";
constexpr double kWidth = 1040, kHeight = 690, kLeft = 62, kTop = 84, kPlotWidth = 430, kPlotHeight = 240,
                 kColumn = 520, kRow = 310;
constexpr std::size_t kMostPoints = 4000;  // the most points per tenant; of more points only every n-th is drawn

const char* colour(std::size_t tenant) {
  return kColours[tenant % std::size(kColours)];
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out;
}

struct Axis {
  double low = 0, high = 1;
  bool is_log = false;

  // Returns where the value lies on the axis: 0 at `low`, 1 at `high`.
  double part(double value) const {
    if (is_log) return std::log(std::max(value, low) / low) / std::log(high / low);
    return (value - low) / (high - low);
  }
  std::vector<double> ticks() const {
    std::vector<double> out;
    if (is_log) {
      const bool is_wide = high / low > 1000;
      for (double decade = std::pow(10, std::floor(std::log10(low * 1.001))); decade <= high; decade *= 10)
        for (const double factor : {1.0, 2.0, 5.0})
          if (const double tick = factor * decade; tick >= low * 0.999 && tick <= high && (factor == 1 || !is_wide))
            out.push_back(tick);
      return out;
    }
    const double decade = std::pow(10, std::floor(std::log10((high - low) / 6)));
    double step = 10 * decade;
    for (const double factor : {5.0, 2.0, 1.0})
      if ((high - low) / (factor * decade) <= 6) step = factor * decade;
    for (double tick = low; tick <= high * 1.0001; tick += step) out.push_back(tick);
    return out;
  }
};

Axis linear_axis(double most) {
  return {0, most > 0 ? most * 1.05 : 1, false};
}
// Returns a logarithmic axis. It begins at the largest of 1, 2, 5, 10, ... that is below all values.
Axis log_axis(double least, double most) {
  if (!(least > 0) || !(most > 0)) return {1, 10, true};
  double low = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {5.0, 2.0})
    if (factor * low <= least) {
      low *= factor;
      break;
    }
  return {low, std::max(most * 1.1, low * 10), true};
}

std::string tick_text(double value) {
  return value >= 1e4 ? fmt::format("{:g}k", value / 1e3) : fmt::format("{:g}", std::round(value * 1e6) / 1e6);
}

class Plot {
 public:
  Plot(int column, int row, Axis x, Axis y) : left_(kLeft + column * kColumn), top_(kTop + row * kRow), x_(x), y_(y) {}

  double at_x(double value) const { return left_ + std::clamp(x_.part(value), 0.0, 1.0) * kPlotWidth; }
  double at_y(double value) const { return top_ + (1 - std::clamp(y_.part(value), 0.0, 1.0)) * kPlotHeight; }

  void draw_frame(const std::string& title, const std::string& x_name) {
    put(R"(<text x="{:.0f}" y="{:.0f}" class="title">{}</text>)", left_, top_ - 10, title);
    for (const double tick : y_.ticks()) {
      put(R"(<line x1="{0:.0f}" x2="{1:.0f}" y1="{2:.1f}" y2="{2:.1f}" class="grid"/>)", left_, left_ + kPlotWidth,
          at_y(tick));
      put(R"(<text x="{:.0f}" y="{:.1f}" text-anchor="end">{}</text>)", left_ - 6, at_y(tick) + 4, tick_text(tick));
    }
    for (const double tick : x_.ticks()) {
      put(R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.0f}" y2="{2:.0f}" class="grid"/>)", at_x(tick), top_,
          top_ + kPlotHeight);
      put(R"(<text x="{:.1f}" y="{:.0f}" text-anchor="middle">{}</text>)", at_x(tick), top_ + kPlotHeight + 16,
          tick_text(tick));
    }
    put(R"(<text x="{:.0f}" y="{:.0f}" text-anchor="end">{}</text>)", left_ + kPlotWidth, top_ + kPlotHeight + 32,
        x_name);
  }
  void draw_line(const std::vector<std::pair<double, double>>& points, const char* colour) {
    if (points.empty()) return;
    out_ += "<polyline points=\"";
    for (const auto& [x, y] : points) out_ += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
    put(R"(" fill="none" stroke="{}" stroke-width="1.5"/>)", colour);
  }
  void draw_dot(double x, double y, const char* colour) {
    put(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2" fill="{}" fill-opacity="0.6"/>)", at_x(x), at_y(y), colour);
  }
  void draw_cross(double x) {
    const double from = at_x(x), to = top_ + 6;
    put(R"(<path d="M{:.1f} {:.1f}l6 6m0 -6l-6 6" stroke="{}" stroke-width="1.5"/>)", from - 3, to - 3, kFailure);
  }
  const std::string& text() const { return out_; }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  const double left_, top_;
  const Axis x_, y_;
  std::string out_;
};

// Curves holds the curves of the plots. Each has one list per tenant.
struct Curves {
  std::vector<std::vector<std::pair<double, double>>> ttft;  // (time of the request in s, milliseconds)
  std::vector<std::vector<double>> rate, worst_gap;          // tokens/s; ms. The time is divided into kBins parts
  std::vector<double> failed_s;
  double least_ttft = 1e300, most_ttft = 0, most_rate = 0, least_gap = 1e300, most_gap = 0;
};
constexpr std::size_t kBins = 60;

Curves curves_of(const ServeBenchResult& result) {
  const auto n = result.options.tenants.size();
  Curves c;
  c.ttft.resize(n);
  c.rate.assign(n, std::vector<double>(kBins));
  c.worst_gap.assign(n, std::vector<double>(kBins));
  const double bin_s = std::max(result.wall_s, 1e-9) / kBins;
  const auto bin_of = [&](double at_s) {
    return std::min(kBins - 1, static_cast<std::size_t>(std::max(at_s, 0.0) / bin_s));
  };
  for (const auto& s : result.samples) {
    if (s.how == ServeSample::kFailed) c.failed_s.push_back(s.asked_s);
    for (std::size_t i = 0; i < s.pieces_s.size(); ++i) {
      c.rate[s.tenant][bin_of(s.pieces_s[i])] += 1 / bin_s;
      if (i == 0) continue;
      auto& worst = c.worst_gap[s.tenant][bin_of(s.pieces_s[i])];
      worst = std::max(worst, (s.pieces_s[i] - s.pieces_s[i - 1]) * 1e3);
    }
    if (s.pieces_s.empty()) continue;
    const double ms = std::max(first_piece_ms(s), 1e-3);
    c.ttft[s.tenant].emplace_back(s.asked_s, ms);
    c.least_ttft = std::min(c.least_ttft, ms);
    c.most_ttft = std::max(c.most_ttft, ms);
  }
  for (std::size_t t = 0; t < n; ++t) {
    c.most_rate = std::max(c.most_rate, *std::ranges::max_element(c.rate[t]));
    for (const double gap : c.worst_gap[t]) {
      if (gap <= 0) continue;
      c.least_gap = std::min(c.least_gap, gap);
      c.most_gap = std::max(c.most_gap, gap);
    }
  }
  return c;
}

std::vector<std::pair<double, double>> over_time(const std::vector<double>& bins, double wall_s, bool with_zeros) {
  std::vector<std::pair<double, double>> out;
  for (std::size_t i = 0; i < bins.size(); ++i)
    if (with_zeros || bins[i] > 0)
      out.emplace_back((static_cast<double>(i) + 0.5) * wall_s / static_cast<double>(kBins), bins[i]);
  return out;
}

// Returns, for each of the sorted values, (value, percentage of the values that are at most as large).
std::vector<std::pair<double, double>> distribution(const std::vector<std::pair<double, double>>& points) {
  std::vector<double> values;
  for (const auto& [at, value] : points) values.push_back(value);
  std::ranges::sort(values);
  std::vector<std::pair<double, double>> out;
  if (!values.empty()) out.emplace_back(values.front(), 0);
  const std::size_t every = values.size() / 500 + 1;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % every == 0 || i + 1 == values.size())
      out.emplace_back(values[i], 100 * static_cast<double>(i + 1) / static_cast<double>(values.size()));
  return out;
}

}  // namespace

std::string serve_bench_svg(const ServeBenchResult& result) {
  const auto c = curves_of(result);
  const auto time = linear_axis(result.wall_s), first = log_axis(c.least_ttft, c.most_ttft);
  Plot latency(0, 0, time, first), parts(1, 0, first, {0, 100, false}), speed(0, 1, time, linear_axis(c.most_rate)),
      gaps(1, 1, time, log_axis(c.least_gap, c.most_gap));
  latency.draw_frame("time to the first token, ms", "s");
  parts.draw_frame("% of the requests whose first token came within", "ms");
  speed.draw_frame("tokens a second", "s");
  gaps.draw_frame("worst gap between two tokens, ms", "s");
  std::string legend;
  double legend_x = kLeft;
  for (std::size_t t = 0; t < result.options.tenants.size(); ++t) {
    const std::size_t every = c.ttft[t].size() / kMostPoints + 1;
    for (std::size_t i = 0; i < c.ttft[t].size(); i += every)
      latency.draw_dot(c.ttft[t][i].first, c.ttft[t][i].second, colour(t));
    parts.draw_line(distribution(c.ttft[t]), colour(t));
    speed.draw_line(over_time(c.rate[t], result.wall_s, true), colour(t));
    gaps.draw_line(over_time(c.worst_gap[t], result.wall_s, false), colour(t));
    const auto& name = result.options.tenants[t].name;
    legend += fmt::format(
        "<rect x=\"{0:.0f}\" y=\"42\" width=\"10\" height=\"10\" fill=\"{1}\"/>"
        "<text x=\"{2:.0f}\" y=\"51\">{3}</text>\n",
        legend_x, colour(t), legend_x + 15, xml(name));
    legend_x += 40 + 7 * static_cast<double>(name.size());
  }
  const std::size_t every = c.failed_s.size() / kMostPoints + 1;
  for (std::size_t i = 0; i < c.failed_s.size(); i += every) latency.draw_cross(c.failed_s[i]);
  if (!c.failed_s.empty())
    legend += fmt::format("<text x=\"{:.0f}\" y=\"51\" style=\"fill:{}\">x failed</text>\n", legend_x, kFailure);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n"
      "<style>text{{font:12px sans-serif;fill:#333}}.title{{font-weight:600}}.grid{{stroke:#ddd}}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<text x=\"{2}\" y=\"26\" class=\"title\">zinc-rt {3} bench serve: {4} at {5}, {6} requests in {7:.1f} s</text>\n"
      "{8}{9}{10}{11}{12}</svg>\n",
      kWidth, kHeight, kLeft, kVersion, xml(result.options.model), xml(result.options.url), result.samples.size(),
      result.wall_s, legend, latency.text(), parts.text(), speed.text(), gaps.text());
}

}  // namespace zinc_rt::tools
