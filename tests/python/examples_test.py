"""Runs the worked examples of python/examples."""

import importlib.util
import subprocess
import sys
import unittest

from support import BERT, MLP, SOURCE, Case


class ExamplesTest(Case):
    def example(self, name, *arguments):
        return subprocess.run([sys.executable, "-W", "ignore", SOURCE / "python/examples" / name,
                               *map(str, arguments)], capture_output=True, text=True, check=False)

    def test_onnx_to_plan(self):
        found = self.example("onnx_to_plan.py", BERT, f"--out={self.folder / 'x.plan'}")
        self.assertEqual(found.returncode, 0, found.stderr)
        for part in ("Model('bert_tiny'", "verified: ", "gradients: 36", ": agrees", "--check"):
            self.assertIn(part, found.stdout)
        self.assertTrue((self.folder / "x.plan").exists())

    def test_compare_machines(self):
        found = self.example("compare_machines.py", MLP, "--machines", "dgx_h100", "p100_cluster",
                             "--precisions", "float32", "bfloat16", "--time_limit=5")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("The fastest: ", found.stdout)
        self.assertEqual(found.stdout.count("dgx_h100     "), 2)

    def test_torch_to_plan(self):
        found = self.example("torch_to_plan.py")
        if importlib.util.find_spec("torch") is None:
            self.assertEqual(found.returncode, 1)
            self.assertIn("needs PyTorch", found.stderr)
            self.skipTest("without torch")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("by PyTorch", found.stdout)


if __name__ == "__main__":
    unittest.main()
