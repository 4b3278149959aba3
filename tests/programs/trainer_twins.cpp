// The kernels of trainer.cu for the simulated GPU.
#include "tools/simgpu/twins/host_kernels.hpp"

#include "tests/programs/trainer_attention_kernels.cuh"
#include "tests/programs/trainer_text_kernels.cuh"

SIM_TWIN(matmul, matmul)
SIM_TWIN(add, add)
SIM_TWIN(rms_norm, rms_norm)
SIM_TWIN(rms_norm_backward, rms_norm_backward)
SIM_TWIN(rms_norm_backward_gain, rms_norm_backward_gain)
SIM_TWIN(gelu, gelu)
SIM_TWIN(gelu_backward, gelu_backward)
SIM_TWIN(adam, adam)
SIM_TWIN(attention_scores, attention_scores)
SIM_TWIN(causal_softmax, causal_softmax)
SIM_TWIN(attention_mix, attention_mix)
SIM_TWIN(attention_mix_backward, attention_mix_backward)
SIM_TWIN(causal_softmax_backward, causal_softmax_backward)
SIM_TWIN(attention_backward, attention_backward)
SIM_TWIN(embed, embed)
SIM_TWIN(embed_backward_tokens, embed_backward_tokens)
SIM_TWIN(embed_backward_positions, embed_backward_positions)
SIM_TWIN(cross_entropy, cross_entropy)
SIM_TWIN(sum_losses, sum_losses)
