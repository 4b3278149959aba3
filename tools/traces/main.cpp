// vramd-trace: makes traces and says what is in one.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/traces/generate.hpp"
#include "tools/traces/reader.hpp"
#include "tools/traces/statistics.hpp"
#include "tools/traces/writer.hpp"

namespace {

using namespace vramd::traces;

constexpr int kUsageError = 2;

int complain(const std::string& what) {
  std::fprintf(stderr, "vramd-trace: %s\n", what.c_str());
  return kUsageError;
}

int info(const std::string& path) {
  Reader reader(path);
  Statistics statistics;
  for (Event event; reader.next(event);) statistics.add(event);
  if (!reader.error().empty()) return complain(reader.error());
  std::fputs(statistics.text().c_str(), stdout);
  return 0;
}

int generate(const TransformerShape& shape, const std::string& path) {
  if (const std::string wrong = check_shape(shape); !wrong.empty()) return complain(wrong);
  Writer writer(path);
  generate_transformer(shape, [&](const Event& event) { writer.write(event); });
  return writer.close() ? 0 : complain(writer.error());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Allocation traces: generate one, or describe one.", "vramd-trace");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();

  std::string path;
  CLI::App* info_command = app.add_subcommand("info", "Check a trace and print its counts and its live peak");
  info_command->add_option("FILE", path, "trace, .csv or .csv.gz")->required()->always_capture_default(false);

  TransformerShape shape;
  CLI::App* generate_command = app.add_subcommand("generate", "Write the trace of training a transformer");
  generate_command->add_option("FILE", path, "file to write; compressed when its name ends in .gz")
      ->required()
      ->always_capture_default(false);
  generate_command->add_option("--layers", shape.layers, "transformer layers");
  generate_command->add_option("--dim", shape.dim, "model width");
  generate_command->add_option("--heads", shape.heads, "attention heads");
  generate_command->add_option("--vocab", shape.vocab, "vocabulary size");
  generate_command->add_option("--batch", shape.batch, "sequences per step");
  generate_command->add_option("--context", shape.context, "tokens per sequence");
  generate_command->add_option("--context-min", shape.context_min,
                               "draw each step's length from here to --context; 0 = always --context");
  generate_command->add_option("--steps", shape.steps, "training steps");
  generate_command->add_option("--streams", shape.streams, "1, or 2: fetch batches and reduce gradients on a second stream");
  generate_command->add_option("--seed", shape.seed, "seed of lengths and times");

  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("vramd-trace: ") + error.what() + "; vramd-trace --help lists commands and flags\n";
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  return info_command->parsed() ? info(path) : generate(shape, path);
}
