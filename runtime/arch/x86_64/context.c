/* SPDX-License-Identifier: MIT */
#include "runtime/arch/context.h"

bool flexsc__fsgsbase;
