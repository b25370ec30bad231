// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import com.android.server.connectivity.DrwaController;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.Test;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.commons.ClassRemapper;
import org.objectweb.asm.commons.Remapper;
import org.objectweb.asm.tree.ClassNode;

/**
 * What the jar of host B links. A class that the system server has only while its own code happens
 * to use it is removed where services.jar is shrunk, and a NoClassDefFoundError would take the
 * system server down at each start.
 */
public class DrwaServiceLinksTest {
    private static final String OURS = "com/android/server/(drwa|connectivity)/Drwa(?!Bpf).*";

    /** Left out of the jar: what the module alone can link, and what stands in for that. */
    private static final String MODULE = ".*/(DrwaBpf[^/]*|com/android/net/module/.*)";

    /** Android's and Java's boot class path, which nothing shrinks. */
    private static final String BOOT =
            "(java|android)/.*|com/android/internal/(annotations|util)/.*";

    /** In services.jar, whose services/proguard.flags keep them. */
    private static final Set<String> KEPT_IN_SERVICES =
            Set.of(
                    "android/net/INetd",
                    "android/net/INetd$Stub",
                    "android/net/INetdUnsolicitedEventListener",
                    "android/net/INetdUnsolicitedEventListener$Stub",
                    "com/android/server/SystemService");

    private static Set<String> findLinked() throws Exception {
        final URI classes =
                DrwaService.class.getProtectionDomain().getCodeSource().getLocation().toURI();
        assertEquals(
                classes,
                DrwaController.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        final Set<String> linked = new TreeSet<>();
        final List<Path> files;
        try (Stream<Path> all = Files.walk(Path.of(classes))) {
            files =
                    all.filter(p -> p.toString().endsWith(".class"))
                            .filter(p -> !p.toString().matches(MODULE))
                            .collect(Collectors.toList());
        }
        assertTrue(files.toString(), files.size() > 10);
        for (Path file : files) collect(file, linked);
        return linked;
    }

    private static void collect(Path file, Set<String> linked) throws IOException {
        final Remapper collector =
                new Remapper() {
                    @Override
                    public String map(String name) {
                        linked.add(name);
                        return name;
                    }
                };
        // A visitor that takes the methods' code, or the remapper would leave it out
        final ClassRemapper remapper = new ClassRemapper(new ClassNode(), collector);
        new ClassReader(Files.readAllBytes(file)).accept(remapper, 0);
    }

    @Test
    public void nothingIsLinkedThatMayBeMissing() throws Exception {
        final Set<String> linked = findLinked();
        linked.removeIf(name -> name.matches(OURS) || name.matches(BOOT));
        linked.removeAll(KEPT_IN_SERVICES);
        assertEquals(Set.of(), linked);
    }

    @Test
    public void nothingElseOfNetdsIsLinked() throws Exception {
        final Set<String> linked = findLinked();
        linked.removeIf(name -> !name.startsWith("android/net/INetd"));
        linked.removeAll(KEPT_IN_SERVICES);
        assertEquals(Set.of(), linked);
    }
}
