// SPDX-License-Identifier: Apache-2.0

package com.android.server.drwa;

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A connection that stands in for binder: requests are a number of words, answers a code and a
 * text, and everything ends with a NUL. See Netd.cpp.
 */
final class Words implements Closeable {
    private final SocketChannel mChannel;
    private final InputStream mIn;
    private final OutputStream mOut;

    Words(SocketChannel channel) {
        mChannel = channel;
        mIn = Channels.newInputStream(channel);
        mOut = new BufferedOutputStream(Channels.newOutputStream(channel));
    }

    static Words connect(Path socket) throws IOException {
        return new Words(SocketChannel.open(UnixDomainSocketAddress.of(socket)));
    }

    void writeRequest(String... words) throws IOException {
        write(Integer.toString(words.length));
        for (String word : words) write(word);
        mOut.flush();
    }

    List<String> readRequest() throws IOException {
        final int count = Integer.parseInt(read());
        final List<String> words = new ArrayList<>();
        while (words.size() < count) words.add(read());
        return words;
    }

    void writeAnswer(int code, String text) throws IOException {
        write(Integer.toString(code));
        write(text);
        mOut.flush();
    }

    /** A word of an answer, which has two. */
    String read() throws IOException {
        final ByteArrayOutputStream word = new ByteArrayOutputStream();
        for (int b; (b = mIn.read()) != 0; ) {
            if (b == -1) throw new EOFException();
            word.write(b);
        }
        return word.toString(StandardCharsets.UTF_8);
    }

    private void write(String word) throws IOException {
        mOut.write(word.getBytes(StandardCharsets.UTF_8));
        mOut.write(0);
    }

    @Override
    public void close() throws IOException {
        mChannel.close();
    }
}
