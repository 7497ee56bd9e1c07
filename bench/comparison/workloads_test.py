"""What the comparison makes of what drivers tell: above all, that it notices two inside one lock."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from comparison.drivers import Failed  # noqa: E402
from comparison.workloads import CROWD, judge, split  # noqa: E402


def answer(*records, overlaps=0):
    return {"records": [list(record) for record in records], "overlaps": overlaps, "failed": 0}


class Judging(unittest.TestCase):
    def test_holds_one_after_the_other_are_handoffs(self):
        figures = judge([answer((0, 0, 1000, 1), (1000, 5000, 6000, 3)), answer((0, 3000, 4000, 2))])
        self.assertEqual(figures["overlaps"], 0)
        self.assertEqual(figures["cycles"], 3)
        self.assertEqual(figures["handoff_us"], 1500)
        self.assertAlmostEqual(figures["handoffs_per_second"], 2 / 0.006)
        self.assertAlmostEqual(figures["over_ideal"], 100)

    def test_clocks_that_are_apart_are_no_overlap(self):
        self.assertEqual(judge([answer((0, 0, 4500, 0)), answer((0, 4000, 12000, 0))])["overlaps"], 0)

    def test_what_the_register_saw_counts(self):
        self.assertEqual(judge([answer((0, 0, 1, 0), overlaps=2), answer((0, 4, 5, 0))])["overlaps"], 2)

    def test_a_fence_that_does_not_rise_is_an_overlap(self):
        self.assertEqual(judge([answer((0, 0, 1, 7)), answer((0, 4, 5, 7))])["overlaps"], 1)
        self.assertEqual(judge([answer((0, 0, 1, 7)), answer((0, 4, 5, 6))])["overlaps"], 1)

    def test_fairness(self):
        fair = judge([answer((0, 10 * i, 10 * i + 1, 0)) for i in range(4)])
        self.assertAlmostEqual(fair["jain"], 1)
        greedy = judge([answer(*((0, 10 * i, 10 * i + 1, 0) for i in range(100)))] + [answer()] * 3)
        self.assertAlmostEqual(greedy["jain"], 0.25)

    def test_nothing_to_compare(self):
        with self.assertRaises(Failed):
            judge([answer(), answer((0, 1, 2, 0))])

    def test_workers_of_one_process_are_told_apart(self):
        workers = split(answer((0, 1, 2, 0), (3, 4, 5, 0), (0, 6, 7, 0)), CROWD)
        self.assertEqual(len(workers), CROWD)
        self.assertEqual([len(worker["records"]) for worker in workers[:3]], [2, 1, 0])


if __name__ == "__main__":
    unittest.main()
