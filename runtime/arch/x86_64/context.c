/* SPDX-License-Identifier: MIT */
#include "context.h"

bool flexsc__fsgsbase;
