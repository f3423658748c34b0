/* sourceroot.h - where the project's source is, for tests that read files of it. */
#ifndef WB_TEST_SOURCEROOT_H
#define WB_TEST_SOURCEROOT_H

/* A string in a file of its own (tests/meson.build makes it): so what is compiled does not depend on the folder of a
 * clone, and ccache can use what another clone has compiled. */
extern const char test_source_root[];

#endif
