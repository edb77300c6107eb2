/* SPDX-License-Identifier: MIT */
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * An HTTP server with a selector and a pool of threads. A connection that has something
 * to read is given to the executor. Its thread answers what has come, and has the selector
 * wait for the connection again. Each answer is a page of 1 KiB. Nothing in this file knows
 * of FlexSC.
 *
 *     java Pool.java [ADDRESS [THREADS]]
 *
 * It prints its port. A connection belongs to one thread at a time: its interest is empty
 * until that thread sets it again.
 */
public class Pool {
    private static final int THREADS = 32, BACKLOG = 4096, PAGE = 1024, HEAD_MAX = 8192;
    private static final byte[] ANSWER = answer();

    private final Selector selector = Selector.open();
    private final ExecutorService executor;

    private Pool(int threads) throws IOException {
        executor = Executors.newFixedThreadPool(threads);
    }

    private static byte[] answer() {
        String text = "A page of a pool's thread.\n";
        String page = text + "x".repeat(PAGE - text.length());
        String head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ";
        return (head + PAGE + "\r\n\r\n" + page).getBytes(StandardCharsets.US_ASCII);
    }

    private static void close(SelectionKey key) {
        try {
            key.channel().close();
        } catch (IOException e) {
            // It is closed all the same.
        }
    }

    /** The requests that have come whole. What is left of the input stays in the buffer. */
    private static int requests(ByteBuffer input) {
        int found = 0, begin = 0;
        for (int i = 3; i < input.position(); i++) {
            if (i - begin >= 3 && input.get(i) == '\n' && input.get(i - 1) == '\r'
                    && input.get(i - 2) == '\n' && input.get(i - 3) == '\r') {
                found++;
                begin = i + 1;
            }
        }
        input.flip().position(begin);
        input.compact();
        return found;
    }

    private void serve(SelectionKey key) {
        SocketChannel channel = (SocketChannel) key.channel();
        ByteBuffer input = (ByteBuffer) key.attachment();
        try {
            if (channel.read(input) < 0) {
                close(key);
                return;
            }
            for (int left = requests(input); left > 0; left--) {
                ByteBuffer output = ByteBuffer.wrap(ANSWER);
                while (output.hasRemaining()) {
                    channel.write(output);
                }
            }
            if (!input.hasRemaining()) {
                close(key);
                return;
            }
            key.interestOps(SelectionKey.OP_READ);
            selector.wakeup();
        } catch (IOException | CancelledKeyException e) {
            close(key);
        }
    }

    private void accept(ServerSocketChannel listener) throws IOException {
        SocketChannel channel;
        while ((channel = listener.accept()) != null) {
            channel.configureBlocking(false);
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            channel.register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(HEAD_MAX));
        }
    }

    private void run(String address) throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress(address, 0), BACKLOG);
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        System.out.println(((InetSocketAddress) listener.getLocalAddress()).getPort());
        while (true) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys()) {
                if (key.isValid() && key.isAcceptable()) {
                    accept(listener);
                } else if (key.isValid()) {
                    key.interestOps(0);
                    executor.execute(() -> serve(key));
                }
            }
            selector.selectedKeys().clear();
        }
    }

    public static void main(String[] args) throws IOException {
        int threads = args.length > 1 ? Integer.parseInt(args[1]) : THREADS;
        new Pool(threads).run(args.length > 0 ? args[0] : "127.0.0.1");
    }
}
