// Compares the gradients of the backward pass with differences of the loss.
#pragma once

#include "tests/programs/trainer_network.hpp"

// Prints one line per parameter. True when all agree.
bool check_gradients(Network& network, Memory& memory, const Batch& batch, int sequences, int context);
