// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.cts;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Marks tests that are for a kernel without DRWA; all others are for one that has it. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface KernelWithoutDrwa {}
