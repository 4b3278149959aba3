#include "tools/simgpu/driver/profiles.hpp"

namespace simgpu {
namespace {

constexpr int kMiB = 1 << 20;
constexpr Link kPcie4{24 * 1024, 10}, kPcie5{50 * 1024, 10};
// Slower than memcpy() on any host, so that the link and not the host is what a bench sees.
constexpr Link kBelowHostMemory{2 * 1024, 10};
constexpr Profile kProfiles[] = {
    {"rtx-a5000-24g", "Simulated NVIDIA RTX A5000", 24576, 8, 6, 64, 1536, 1695000, 8001000, 384, 6 * kMiB, 101376, true,
     kPcie4},
    {"bi-v150-64g", "Simulated BI-V150", 65536, 7, 1, 64, 2048, 1500000, 1600000, 4096, 8 * kMiB, 98304, false, kPcie4},
    {"a100-80g", "Simulated NVIDIA A100-SXM4-80GB", 81920, 8, 0, 108, 2048, 1410000, 1593000, 5120, 40 * kMiB, 166912, true,
     kPcie4},
    {"h200-141g", "Simulated NVIDIA H200", 143771, 9, 0, 132, 2048, 1980000, 3201000, 6144, 50 * kMiB, 232448, true, kPcie5},
    {"bench-2g", "Simulated bench GPU 2 GiB", 2048, 8, 6, 16, 1536, 1500000, 8001000, 256, 4 * kMiB, 101376, true,
     kBelowHostMemory},
    {"tiny-512m", "Simulated GPU 512 MiB", 512, 8, 6, 4, 1536, 1500000, 8001000, 128, 2 * kMiB, 101376, true, kBelowHostMemory},
    {"tiny-1g", "Simulated GPU 1 GiB", 1024, 8, 6, 4, 1536, 1500000, 8001000, 128, 2 * kMiB, 101376, true, kBelowHostMemory},
    {"tiny-2g", "Simulated GPU 2 GiB", 2048, 8, 6, 8, 1536, 1500000, 8001000, 128, 2 * kMiB, 101376, true, kBelowHostMemory},
    {"tiny-4g", "Simulated GPU 4 GiB", 4096, 8, 6, 8, 1536, 1500000, 8001000, 128, 4 * kMiB, 101376, true, kBelowHostMemory},
    {"tiny-8g", "Simulated GPU 8 GiB", 8192, 8, 6, 16, 1536, 1500000, 8001000, 256, 4 * kMiB, 101376, true, kBelowHostMemory},
};

}  // namespace

const Profile* find_profile(const std::string& name) {
  for (const Profile& profile : kProfiles) {
    if (name == profile.name) return &profile;
  }
  return nullptr;
}

std::string profile_names() {
  std::string names;
  for (const Profile& profile : kProfiles) names += (names.empty() ? "" : ", ") + std::string(profile.name);
  return names;
}

}  // namespace simgpu
