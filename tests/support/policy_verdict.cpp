// Reads policy texts, separated by NUL bytes, from standard input; prints "ok" or "bad" for each.
#include <iostream>
#include <iterator>
#include <string>

#include "policies/file/policy.hpp"

int main() {
  std::string text;
  while (std::getline(std::cin, text, '\0')) std::cout << (vramd::policy::parse(text).policy ? "ok\n" : "bad\n");
}
