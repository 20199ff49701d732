import numpy as np

from testbed.analysis.processes import full_sockets, process_figures


def test_figures_are_sums_over_processes_and_the_worst_of_any():
    """Two processes over two seconds: memory is each one's largest, the rest sums and maxima."""
    rows = {
        "node": np.array(["root.west", "us/leaf-1"] * 2, object),
        "cpu_s": np.array([0.1, 0.2, 0.3, 0.4]),
        "memory_bytes": np.array([10, 30, 20, 25]),
        "loop_lag_s": np.array([0.0, 0.001, 0.003, 0.0]),
        "stall_s": np.array([0.01, 0.0, 0.0, 0.02]),
        "stall_at_s": np.array([0.3, 0.4, 1.2, 1.6]),
        "log_pause_s": np.array([0.001, 0.0, 0.002, 0.0]),
        "collector_pause_s": np.zeros(4),
        "would_blocks": np.array([0, 1, 2, 0]),
    }

    found = process_figures(rows)

    assert found == {
        "cpu_s": 1.0, "memory_bytes": 50, "loop_lag_s": 0.003, "stall_s": 0.02, "stall_node": "us/leaf-1",
        "stall_at_s": 1.6, "log_pause_s": 0.002, "collector_pause_s": 0.0, "would_blocks": 3,
    }  # fmt: skip


def test_virtual_runs_have_no_processes():
    assert process_figures({})["would_blocks"] is None


def test_frames_that_waited_for_a_full_socket_are_noted_with_the_process_of_most():
    rows = {"node": np.array(["a", "b", "a", "b"], object), "would_blocks": np.array([1, 5, 2, 0])}

    assert full_sockets(rows) == "8 frames had to wait for a full socket, most of them at b"
    assert full_sockets({**rows, "would_blocks": np.zeros(4, int)}) == full_sockets({}) == ""
