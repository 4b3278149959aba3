#include "daemon/users.hpp"

#include <grp.h>
#include <pwd.h>

#include "daemon/text.hpp"

namespace vramd {
namespace {

constexpr std::size_t kBuffer = 1 << 16;

std::string group_name(gid_t gid) {
  std::vector<char> buffer(kBuffer);
  group entry{};
  group* found = nullptr;
  if (::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return text(gid);
  return found->gr_name;
}

}  // namespace

const Users::User& Users::find(uid_t uid, gid_t gid) {
  const auto [at, added] = known_.try_emplace({uid, gid});
  User& user = at->second;
  if (!added) return user;
  std::vector<char> buffer(kBuffer);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    user.name = text(uid);
    user.groups.push_back(group_name(gid));
    return user;
  }
  user.name = found->pw_name;
  std::vector<gid_t> groups(256);
  int count = static_cast<int>(groups.size());
  if (::getgrouplist(found->pw_name, gid, groups.data(), &count) < 0) count = static_cast<int>(groups.size());
  for (int i = 0; i < count; ++i) user.groups.push_back(group_name(groups[static_cast<std::size_t>(i)]));
  return user;
}

}  // namespace vramd
