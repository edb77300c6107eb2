// SPDX-License-Identifier: MIT
/* A thread's random numbers go on from here, in whichever file it takes one. */
#include "chance.h"

__thread uint64_t chance_state = 1;
