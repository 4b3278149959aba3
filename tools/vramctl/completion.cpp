// Completion scripts, made from the same tree of commands that parses the command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tools/vramctl/application.hpp"

namespace vramd::ctl {
namespace {

// A command such as "policy check": its subcommands and options, and the words that an option's value may be.
struct Node {
  std::string path;  // "" for vramctl itself
  std::vector<std::string> subcommands, options;
  std::vector<std::pair<std::string, std::vector<std::string>>> values;  // by option, or "" for a positional one
};

// "{a,b}" of CLI11's validators as words. Empty for other types.
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> words;
  if (open == std::string::npos || close == std::string::npos || close < open) return words;
  std::string rest = type.substr(open + 1, close - open - 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    words.push_back(rest.substr(0, comma));
    rest.erase(0, std::min(comma + 1, rest.size()));
  }
  return words;
}

void collect(const CLI::App& app, const std::string& path, std::vector<Node>& nodes) {
  Node node{path, {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    std::string first;
    for (const std::string& name : option->get_lnames()) node.options.push_back("--" + name);
    if (!option->get_lnames().empty()) first = "--" + option->get_lnames().front();
    if (const auto words = words_of(*option); !words.empty()) node.values.emplace_back(first, words);
  }
  std::vector<Node> below;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // hidden
    node.subcommands.push_back(command->get_name());
    collect(*command, path.empty() ? command->get_name() : path + ' ' + command->get_name(), below);
  }
  nodes.push_back(std::move(node));
  nodes.insert(nodes.end(), below.begin(), below.end());
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> all_words(const Node& node) {
  std::vector<std::string> words = node.subcommands;
  words.insert(words.end(), node.options.begin(), node.options.end());
  for (const auto& [option, values] : node.values)
    if (option.empty()) words.insert(words.end(), values.begin(), values.end());
  return words;
}

// zsh runs the same function through bashcompinit.
std::string bash_script(const std::vector<Node>& nodes) {
  std::string script =
      "_vramctl() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" path=\"\" word "
      "i words=\"\"\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    word=\"${COMP_WORDS[i]}\"\n"
      "    if [[ \"$word\" == -- ]]; then COMPREPLY=($(compgen -c -f -- \"$current\")); return; fi\n"
      "    case \"$path|$word\" in\n";
  for (const Node& node : nodes) {
    for (const std::string& command : node.subcommands)
      script +=
          "      '" + node.path + '|' + command + "') path='" + (node.path.empty() ? "" : node.path + ' ') + command + "' ;;\n";
  }
  script += "    esac\n  done\n  case \"$path|$previous\" in\n";
  for (const Node& node : nodes) {
    for (const auto& [option, values] : node.values)
      if (!option.empty()) script += "    '" + node.path + '|' + option + "') words='" + joined(values) + "' ;;\n";
  }
  script += "    *) case \"$path\" in\n";
  for (const Node& node : nodes) script += "      '" + node.path + "') words='" + joined(all_words(node)) + "' ;;\n";
  script +=
      "    esac ;;\n  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [[ ${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "}\n"
      "complete -F _vramctl vramctl\n";
  return script;
}

// True in fish when the words of `path` have been typed: "policy check" is two conditions.
std::string fish_condition(const std::string& path) {
  if (path.empty()) return "__fish_use_subcommand";
  std::string condition;
  std::istringstream words(path);
  for (std::string word; words >> word;)
    condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
  return condition;
}

std::string fish_script(const std::vector<Node>& nodes) {
  std::string script;
  for (const Node& node : nodes) {
    const std::string condition = fish_condition(node.path);
    const std::string start = "complete -c vramctl -n '" + condition + "'";
    for (const std::string& command : node.subcommands) script += start + " -f -a " + command + '\n';
    for (const std::string& option : node.options) {
      script += start + " -l " + option.substr(2);
      for (const auto& [name, values] : node.values)
        if (name == option) script += " -x -a '" + joined(values) + "'";
      script += '\n';
    }
    for (const auto& [name, values] : node.values)
      if (name.empty()) script += start + " -f -a '" + joined(values) + "'\n";
  }
  return script;
}

}  // namespace

std::string completion_script(const std::string& shell) {
  Options options;
  const auto app = make_application(options);
  std::vector<Node> nodes;
  collect(*app, "", nodes);
  if (shell == "fish") return fish_script(nodes);
  const std::string script = bash_script(nodes);
  return shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" + script : script;
}

}  // namespace vramd::ctl
