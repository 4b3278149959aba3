// Names of users and groups, asked of the system once each: the directory behind them may be slow.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace vramd {

class Users {
 public:
  struct User {
    std::string name;                 // the number when the system knows no name
    std::vector<std::string> groups;  // primary and supplementary, by name
  };
  const User& find(uid_t uid, gid_t gid);
  void forget() { known_.clear(); }

 private:
  std::map<std::pair<uid_t, gid_t>, User> known_;
};

}  // namespace vramd
