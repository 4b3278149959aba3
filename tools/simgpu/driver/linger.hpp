// The last work of a killed process (SIM_LINGER_MS). A GPU may finish what a dead process had submitted, and its memory stays
// taken and may still be written until then. A process of its own stands in for the card: it holds the slot of the dead
// process, scribbles over all its chunks for the settable time if anything was running, and then lets go.
#pragma once

namespace simgpu {

class Control;

// Starts it for this process. To be called once the slot is taken.
void keep_working_after_death(Control& control);

}  // namespace simgpu
