#include "daemon/pages.hpp"

#include "daemon/metrics.hpp"
#include "daemon/status.hpp"

namespace vramd {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kIndex =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>vramd</title></head><body>\n"
    "<h1>vramd</h1>\n<ul>\n"
    "<li><a href=\"/metrics\">/metrics</a> for Prometheus</li>\n"
    "<li><a href=\"/api/v1/status\">/api/v1/status</a> as JSON</li>\n"
    "<li><a href=\"/-/healthy\">/-/healthy</a>, <a href=\"/-/ready\">/-/ready</a></li>\n"
    "</ul>\n</body></html>\n";

}  // namespace

Page answer_page(std::string_view path, bool ready, const std::function<Snapshot()>& snapshot) {
  if (path == "/") return {200, "text/html; charset=utf-8", kIndex};
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(snapshot())};
  if (path == "/api/v1/status") return {200, "application/json", status_json(snapshot())};
  if (path == "/-/healthy" || path == "/health") return {200, kText, "vramd is healthy.\n"};
  if (path == "/-/ready") return ready ? Page{200, kText, "vramd is ready.\n"} : Page{503, kText, "vramd is not ready.\n"};
  return {404, kText, "Not found. There is /metrics, /api/v1/status, /-/healthy and /-/ready.\n"};
}

}  // namespace vramd
