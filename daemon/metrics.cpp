#include "daemon/metrics.hpp"

#include <dirent.h>
#include <prometheus/text_serializer.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <sstream>

#include "daemon/text.hpp"

namespace vramd {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

class Page {
 public:
  void family(const char* name, const char* help, prometheus::MetricType type) {
    prometheus::MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = type;
    families_.push_back(std::move(family));
  }
  void gauge(const char* name, const char* help) { family(name, help, prometheus::MetricType::Gauge); }
  void counter(const char* name, const char* help) { family(name, help, prometheus::MetricType::Counter); }
  // A sample of the family begun last.
  void sample(double value, Labels labels = {}) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    if (families_.back().type == prometheus::MetricType::Counter)
      metric.counter.value = value;
    else
      metric.gauge.value = value;
    families_.back().metric.push_back(std::move(metric));
  }
  std::string text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return out.str();
  }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

double number(std::uint64_t value) { return static_cast<double>(value); }
double number(Bytes bytes) { return static_cast<double>(bytes.value); }

Labels labels_of(const DeviceSnapshot& device) { return {{"gpu", text(device.index)}, {"uuid", device.uuid}}; }
Labels labels_of(const DeviceSnapshot& device, const char* name, const char* value) {
  Labels labels = labels_of(device);
  labels.push_back({name, value});
  return labels;
}

void add_build(Page& page, const Snapshot& snapshot) {
  page.gauge("vramd_build_info", "Version of the daemon and what it runs on.");
  page.sample(1, {{"version", snapshot.version}, {"backend", snapshot.simulated ? "sim" : "cuda"}});
}

void add_devices(Page& page, const Snapshot& snapshot) {
  page.gauge("vramd_device_info", "GPUs of this host.");
  for (const DeviceSnapshot& device : snapshot.devices) {
    Labels labels = labels_of(device, "name", device.name.c_str());
    labels.push_back({"pci_bus_id", device.pci_bus_id});
    page.sample(1, std::move(labels));
  }
  const auto each = [&](const std::function<double(const DeviceSnapshot&)>& value) {
    for (const DeviceSnapshot& device : snapshot.devices) page.sample(value(device), labels_of(device));
  };
  page.gauge("vramd_device_memory_total_bytes", "Memory of the GPU.");
  each([](const auto& device) { return number(device.total); });
  page.gauge("vramd_device_memory_free_bytes", "Memory that the driver reports as free.");
  each([](const auto& device) { return number(device.free); });
  page.gauge("vramd_pool_reserved_bytes", "Memory that the pool holds: leased and cached.");
  each([](const auto& device) { return number(device.totals.reserved()); });
  page.gauge("vramd_pool_leased_bytes", "Memory of chunks that are leased to sessions.");
  each([](const auto& device) { return number(device.totals.leased); });
  page.gauge("vramd_pool_cached_bytes", "Memory of idle chunks that are kept warm.");
  each([](const auto& device) { return number(device.totals.cached); });
  page.gauge("vramd_pool_stranded_bytes", "Memory that exists and cannot be given to anybody.");
  for (const DeviceSnapshot& device : snapshot.devices)
    page.sample(number(device.stranded), labels_of(device, "cause", "dead_session"));
  page.gauge("vramd_session_charged_bytes", "Memory outside the pool in the accounts of all sessions.");
  each([](const auto& device) { return number(device.totals.charged); });
  page.gauge("vramd_sessions", "Sessions that use the GPU.");
  each([](const auto& device) { return number(device.sessions); });
}

void add_grants(Page& page, const Snapshot& snapshot) {
  page.counter("vramd_allocation_requests_total",
               "Requests for a chunk: served warm (hit), created (miss), "
               "or refused because the device could not back it (oom).");
  for (const DeviceSnapshot& device : snapshot.devices) {
    page.sample(number(device.counts.hit), labels_of(device, "result", "hit"));
    page.sample(number(device.counts.miss), labels_of(device, "result", "miss"));
    page.sample(number(device.counts.oom), labels_of(device, "result", "oom"));
  }
  const auto each = [&](std::uint64_t chunks::Counts::*count) {
    for (const DeviceSnapshot& device : snapshot.devices) page.sample(number(device.counts.*count), labels_of(device));
  };
  page.counter("vramd_chunks_granted_total", "Chunks leased to sessions.");
  for (const DeviceSnapshot& device : snapshot.devices)
    page.sample(number(device.counts.hit + device.counts.miss), labels_of(device));
  page.counter("vramd_chunks_recycled_total", "Chunks leased that another session of the domain had used before.");
  each(&chunks::Counts::recycled);
  page.counter("vramd_pool_conversions_total", "Idle chunks released to make room for another size or domain.");
  each(&chunks::Counts::converted);
  page.counter("vramd_pool_trimmed_total", "Idle chunks released because the pool held more than its retain.");
  each(&chunks::Counts::trimmed);
  page.counter("vramd_recalls_total", "Requests to sessions to give back what they hold idle.");
  page.sample(number(snapshot.recalls));
  page.counter("vramd_recalls_late_total", "Recalls that a session did not answer in time.");
  page.sample(number(snapshot.late_recalls));
  page.counter("vramd_limit_refusals_total", "Requests and charges refused by a limit.");
  each(&chunks::Counts::over_limit);
}

void add_service(Page& page, const Snapshot& snapshot) {
  page.counter("vramd_connections_dropped_total", "Connections that the daemon closed, by reason.");
  for (const auto& [reason, count] : snapshot.dropped) page.sample(number(count), {{"reason", reason}});
  page.gauge("vramd_config_last_reload_successful", "1 when the configuration was valid the last time it was read.");
  page.sample(snapshot.last_reload_successful ? 1 : 0);
  page.gauge("vramd_config_last_reload_success_timestamp_seconds", "When a valid configuration was last read.");
  page.sample(static_cast<double>(snapshot.last_reload_success_time));
}

double open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  double count = -3;                             // ".", ".." and the folder's own
  while (::readdir(folder) != nullptr) ++count;  // one thread uses this stream
  ::closedir(folder);
  return count;
}

void add_process(Page& page, const Snapshot& snapshot) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  page.counter("process_cpu_seconds_total", "User and system CPU time of the daemon.");
  page.sample(seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));

  unsigned long virtual_pages = 0, resident_pages = 0;
  if (FILE* file = ::fopen("/proc/self/statm", "re"); file != nullptr) {
    if (::fscanf(file, "%lu %lu", &virtual_pages, &resident_pages) != 2) virtual_pages = resident_pages = 0;
    ::fclose(file);
  }
  const auto page_size = static_cast<double>(::sysconf(_SC_PAGESIZE));
  page.gauge("process_virtual_memory_bytes", "Virtual memory of the daemon.");
  page.sample(static_cast<double>(virtual_pages) * page_size);
  page.gauge("process_resident_memory_bytes", "Resident memory of the daemon.");
  page.sample(static_cast<double>(resident_pages) * page_size);
  page.gauge("process_open_fds", "Open descriptors of the daemon.");
  page.sample(open_descriptors());
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  page.gauge("process_max_fds", "Descriptors that the daemon may open.");
  page.sample(static_cast<double>(limit.rlim_cur));
  page.gauge("process_start_time_seconds", "Start time of the daemon since 1970.");
  page.sample(static_cast<double>(snapshot.start_time_seconds));
}

}  // namespace

std::string metrics_text(const Snapshot& snapshot) {
  Page page;
  add_build(page, snapshot);
  add_devices(page, snapshot);
  add_grants(page, snapshot);
  add_service(page, snapshot);
  add_process(page, snapshot);
  return page.text();
}

}  // namespace vramd
