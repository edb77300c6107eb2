/* SPDX-License-Identifier: MIT */
#include "state.h"

struct runtime flexsc__runtime;
