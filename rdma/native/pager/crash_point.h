/* Points at which a build for tests kills itself, as by kill -9: -DPONDSTACK_CRASH_POINTS. Nothing in any other build.
 *
 * The environment says where and when: PONDSTACK_CRASH_AT=NAME:COUNT is the COUNT-th time that this process comes
 * there.
 */
#ifndef PONDSTACK_PAGER_CRASH_POINT_H
#define PONDSTACK_PAGER_CRASH_POINT_H

#ifdef PONDSTACK_CRASH_POINTS
void crash_point(const char *name);
#define CRASH_POINT(name) crash_point(name)
#else
#define CRASH_POINT(name) ((void)0)
#endif

#endif
