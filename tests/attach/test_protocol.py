"""The notes that the Python layer takes of a real torch, and that a program cannot tell that it takes them."""

import re
import textwrap
import unittest

from attach_case import AttachCase

# Every program starts with it: a model, an optimizer, a scaler, gradients.
PRELUDE = """
    import copy, inspect, pickle, sys, warnings
    import torch
    from torch.optim import lr_scheduler
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    def gradients(scaler=None):
        loss = model(torch.ones(3, 4)).square().sum()
        (scaler.scale(loss) if scaler else loss).backward()
"""


class Protocol(AttachCase):
    maxDiff = None

    def run_training(self, program, **environment):
        done = self.run_python(textwrap.dedent(PRELUDE) + textwrap.dedent(program), **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def notes(self, program, without=("optimizer_made",), **environment):
        done = self.run_training(program, **environment)
        self.assertEqual(done.stderr, "")
        return [call for call in self.calls() if not call.startswith(("attach", "detach", *without))]


class Optimizers(Protocol):
    def test_step_by_hand(self):
        notes = self.notes("optimizer = torch.optim.SGD(model.parameters(), lr=0.5); gradients(); optimizer.step()")
        self.assertEqual(notes, [f"optimizer SGD lr=0.5 scaler=0 begin={begin} object=1" for begin in (1, 0)])

    def test_step_through_the_scaler(self):
        notes = self.notes("""
            class Mine(torch.optim.Adam): pass
            optimizer = Mine(model.parameters(), lr=0.25)
            schedule = lr_scheduler.StepLR(optimizer, 10)  # puts one more frame between
            scaler = torch.amp.GradScaler("cpu")
            gradients(scaler); scaler.step(optimizer); scaler.update()
        """)
        self.assertEqual(
            [note for note in notes if note.startswith("optimizer")],
            [f"optimizer Mine lr=0.25 scaler=1 begin={begin} object=1" for begin in (1, 0)],
        )

    def test_a_new_optimizer_is_told(self):
        notes = self.notes(
            """
            class Mine(torch.optim.Adam): pass
            Mine(model.parameters())
        """,
            without=(),
        )
        self.assertEqual(notes, ["optimizer_made"])

    def test_with_a_budget_the_scaler_says_where_its_operators_run(self):
        program = """
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            scaler = torch.amp.GradScaler("cpu")
            gradients(scaler); scaler.unscale_(optimizer); scaler.step(optimizer); scaler.update()
        """
        notes = self.notes(program, AMPSCOPE_BUDGET="2")
        regions = ["scaler_region 1", "scaler_region 0"]
        self.assertEqual(
            [note for note in notes if not note.startswith(("optimizer", "scaler_made"))],
            ["cost plausible", *regions, *regions],
        )
        self.log.unlink()
        self.assertFalse([note for note in self.notes(program) if note.startswith(("scaler_region", "cost"))])

    def test_skipped_step_is_no_step(self):
        notes = self.notes("""
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            scaler = torch.amp.GradScaler("cpu")
            gradients(scaler); model.weight.grad[0, 0] = float("inf"); scaler.step(optimizer); scaler.update()
        """)
        self.assertEqual(notes, ["scaler_made object=1"])

    def test_learning_rate_that_is_a_tensor(self):
        for rate, seen in (("torch.tensor(0.125)", "0.125"), ("torch.tensor(0.375, dtype=torch.float64)", "0.375")):
            self.log.unlink(missing_ok=True)
            notes = self.notes(f"gradients(); torch.optim.SGD(model.parameters(), lr={rate}).step()")
            self.assertEqual(notes[0], f"optimizer SGD lr={seen} scaler=0 begin=1 object=1")

    def test_learning_rate_is_read_without_an_operator(self):
        self.run_training("""
            from torch.utils._python_dispatch import TorchDispatchMode
            seen = []
            class Watch(TorchDispatchMode):
                def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                    seen.append(str(function))
                    return function(*args, **(kwargs or {}))
            class Nothing(torch.optim.Optimizer):
                def step(self): pass
            optimizer = Nothing(model.parameters(), {"lr": torch.tensor(0.5)})
            with Watch(): optimizer.step()
            assert not [name for name in seen if not name.startswith('profiler.')], seen
        """)


class Schedules(Protocol):
    def schedule_notes(self, program):
        setup = "warnings.simplefilter('ignore'); optimizer = torch.optim.SGD(model.parameters(), lr=1.0)\n"
        program = setup + program
        return [note for note in self.notes(program) if note.startswith("schedule")]

    def test_constructor_is_told_from_steps(self):
        notes = self.schedule_notes("s = lr_scheduler.StepLR(optimizer, 2); s.step(); s.step()")
        self.assertEqual(notes, [f"schedule StepLR constructor={c} object=1 optimizer=1" for c in (1, 0, 0)])

    def test_own_step_of_the_class(self):
        notes = self.schedule_notes(
            "s = lr_scheduler.ReduceLROnPlateau(optimizer); s.step(1.0); s.step(epoch=7, metrics=2.0)"
        )
        self.assertEqual(notes, ["schedule ReduceLROnPlateau constructor=0 object=1 optimizer=1"] * 2)

    def test_schedule_of_schedules_is_one_step(self):
        notes = self.schedule_notes("""
parts = [lr_scheduler.ConstantLR(optimizer, total_iters=2), lr_scheduler.ExponentialLR(optimizer, 0.9)]
for s in (lr_scheduler.SequentialLR(optimizer, parts, milestones=[2]), lr_scheduler.ChainedScheduler(parts)):
    print('mark')
    for _ in range(3): s.step()
""")
        steps = [note.split()[1] for note in notes if "constructor=0" in note]
        self.assertEqual(steps, ["SequentialLR"] * 3 + ["ChainedScheduler"] * 3)

    def test_class_of_the_program_with_a_step_of_its_own(self):
        notes = self.schedule_notes("""
class Warmup(lr_scheduler.LRScheduler):
    def __init__(self, optimizer):
        super().__init__(optimizer)
        self.step()
    def get_lr(self): return [0.5]
    def step(self, epoch=None):
        self.last_epoch += 1
        for group in self.optimizer.param_groups: group['lr'] = 0.01 * self.last_epoch
class Chatty(Warmup):
    def step(self, epoch=None):
        super().step(epoch)
s = Warmup(optimizer); s.step()
s = Chatty(optimizer); s.step()
""")
        expected = [("Warmup", 1), ("Warmup", 1), ("Warmup", 0), ("Chatty", 1), ("Chatty", 1), ("Chatty", 0)]
        self.assertEqual(notes, [f"schedule {name} constructor={c} object=1 optimizer=1" for name, c in expected])

    def test_schedule_that_is_not_torchs(self):
        self.assertEqual(
            self.schedule_notes("""
class Own:
    def step(self): pass
Own().step()
"""),
            [],
        )

    def test_step_that_raises_is_no_step(self):
        notes = self.schedule_notes("""
s = lr_scheduler.ReduceLROnPlateau(optimizer)
try: s.step()
except TypeError as error: print(error)
else: raise AssertionError
s.step(1.0)
""")
        self.assertEqual(len(notes), 1)


class Tracebacks(Protocol):
    def test_they_show_the_program_and_torch_alone(self):
        self.notes("""
import traceback
scaler = torch.amp.GradScaler('cpu')
for call in (lambda: scaler.update(), lambda: scaler.load_state_dict({})):
    try: call()
    except Exception as error: files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    else: raise AssertionError
    assert len(files) >= 3 and not any('ampscope wrapper' in file for file in files), files
    assert 'grad_scaler' in files[-1], files
""")


class Scale(Protocol):
    def test_read_by_the_program(self):
        notes = self.notes("scaler = torch.amp.GradScaler('cpu', init_scale=4.0); assert scaler.get_scale() == 4.0")
        self.assertEqual(notes, ["scaler_made object=1", "scale_read object=1 factor=0"])

    def test_read_to_multiply_or_divide_by(self):
        notes = self.notes("""
class Keeper:
    def read(self, scaler): self.scale = scaler.get_scale()
    def use(self, norm): return norm / self.scale
    def log(self, scaler): self.logged = scaler.get_scale()
def divides(scaler): return 1.0 / scaler.get_scale()
def divides_later(scaler):
    scale = scaler.get_scale()
    return [norm / scale for norm in [2.0]] or 5.0 / scale
def prints(scaler):
    scale = scaler.get_scale()
    print('scale', scale)
def compares(scaler):
    before = scaler.get_scale()
    return before > 2.0
scaler, keeper = torch.amp.GradScaler('cpu'), Keeper()
for read in (divides, divides_later, prints, compares, keeper.read, keeper.log):
    read(scaler)
""")
        factors = [1, 1, 0, 0, 1, 0]
        self.assertEqual(notes[1:], [f"scale_read object=1 factor={factor}" for factor in factors])

    def test_read_by_torch_itself(self):
        self.assertEqual(
            self.notes("torch.amp.GradScaler('cpu').state_dict(); pickle.dumps(torch.amp.GradScaler('cpu'))"),
            ["scaler_made object=1"] * 2,
        )


class ScalerLife(Protocol):
    def test_made_once_for_a_subclass(self):
        notes = self.notes("""
            class Mine(torch.amp.GradScaler):
                def __init__(self): super().__init__("cpu")
            Mine()
        """)
        self.assertEqual(notes, ["scaler_made object=1"])

    def test_restored(self):
        notes = self.notes("""
            optimizer = torch.optim.Adam(model.parameters())
            empty = copy.deepcopy(optimizer.state_dict())
            optimizer.load_state_dict(empty)  # nothing in it
            optimizer.state[model.weight]["step"] = torch.tensor(3.0)
            torch.optim.Adam(model.parameters()).load_state_dict(optimizer.state_dict())
            scaler = torch.amp.GradScaler("cpu")
            scaler.load_state_dict(scaler.state_dict())
        """)
        self.assertEqual(notes, ["optimizer_restored object=1", "scaler_made object=1", "scaler_restored object=1"])

    def refusal(self, program):
        self.log.unlink(missing_ok=True)
        notes = self.notes(f"""
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            try: {program}
            except Exception as error: assert not vars(error), vars(error)
            else: raise AssertionError
        """)
        return [note for note in notes if note.startswith("refusal")]

    def test_refusals(self):
        for program, reason in (
            ("gradients(scaler); scaler.unscale_(optimizer); scaler.unscale_(optimizer)", 20),
            ("gradients(scaler); scaler.step(optimizer); scaler.step(optimizer)", 21),
            ("gradients(scaler); scaler.step(optimizer); scaler.unscale_(optimizer=optimizer)", 22),
            ("model.half(); gradients(scaler); scaler.step(optimizer)", 23),
            ("gradients(scaler); optimizer.zero_grad(); scaler.step(optimizer)", 24),
            ("gradients(); scaler.step(optimizer)", 26),
            ("gradients(scaler); scaler.step(optimizer, closure=gradients)", 27),
        ):
            with self.subTest(program):
                if "half" in program:
                    program = program.replace(
                        "gradients(scaler)", "scaler.scale(model(torch.ones(3, 4).half()).sum()).backward()"
                    )
                self.assertEqual(self.refusal(program), [f"refusal SGD {1 << reason} object=1"])

    def test_refused_update(self):
        self.assertEqual(self.refusal("gradients(scaler); scaler.update()"), [f"refusal  {1 << 25} object=0"])

    def test_other_exceptions_are_none(self):
        self.assertEqual(self.refusal("gradients(scaler); scaler.step(None)"), [])


class Invisible(Protocol):
    """Each program prints what it sees; observed and not, it must print the same."""

    def assert_same(self, program):
        plain = self.run_training(program, observed=False)
        observed = self.run_training(program)
        self.assertEqual(observed.stdout, plain.stdout)
        self.assertEqual(
            *(re.sub(r"(?m)^W\d+ .*\n", "", done.stderr) for done in (observed, plain))
        )  # lines with a time
        return plain

    def test_inspection(self):
        plain = self.assert_same("""
            for owner, name in ((lr_scheduler.StepLR, 'step'), (lr_scheduler.ReduceLROnPlateau, 'step'),
                                (torch.amp.GradScaler, 'get_scale'), (torch.cuda.amp.GradScaler, 'get_scale'),
                                (torch.amp.GradScaler, '__init__'), (torch.amp.GradScaler, 'step'),
                                (torch.amp.GradScaler, 'unscale_'), (torch.amp.GradScaler, 'update'),
                                (torch.optim.Optimizer, 'load_state_dict'), (torch.optim.Optimizer, '__init__')):
                function = getattr(owner, name)
                print(type(function), function.__qualname__, function.__module__, function.__code__.co_filename,
                      inspect.signature(function), inspect.isfunction(function), len(inspect.getsource(function)),
                      pickle.loads(pickle.dumps(function)) is function, hasattr(function, '__wrapped__'))
            schedule = lr_scheduler.StepLR(torch.optim.SGD(model.parameters(), lr=1.0), 1)
            method = schedule.step
            print(type(method), method.__name__, method.__self__ is schedule, inspect.signature(method), method.__doc__)
            print(inspect.signature(torch.amp.GradScaler), inspect.signature(torch.amp.GradScaler('cpu').step))
            print(inspect.getmembers(lr_scheduler.LRScheduler, inspect.isfunction).__len__())
        """)
        self.assertIn("LRScheduler.step", plain.stdout)

    def test_warnings_name_the_line_of_the_program(self):
        plain = self.assert_same("""
            optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
            schedule = lr_scheduler.StepLR(optimizer, 1)
            schedule.step()
            optimizer.step()
            for _ in range(2): schedule.step(3)
        """)
        self.assertIn("program.py", plain.stderr)
        self.assertIn("optimizer.step()` before `lr_scheduler.step()", plain.stderr)

    def test_copies(self):
        self.assert_same("""
            optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
            schedule = lr_scheduler.OneCycleLR(optimizer, 1.0, 10)
            gradients(); optimizer.step(); schedule.step()
            scaler = torch.amp.GradScaler('cpu')
            for thing in (optimizer, scaler):
                print(sorted(pickle.loads(pickle.dumps(thing)).state_dict()), sorted(copy.deepcopy(thing).state_dict()))
            print(schedule.state_dict(), sorted(vars(optimizer)), sorted(vars(schedule)), sorted(vars(scaler)))
        """)

    def test_class_pickled_by_value(self):
        # What cloudpickle does with a class of the main program: it takes its __dict__ apart and pickles each entry.
        self.run_training("""
            class Mine(lr_scheduler.LRScheduler):
                def step(self, epoch=None): pass
            entry = vars(Mine)['step']
            function = entry if inspect.isfunction(entry) else pickle.loads(pickle.dumps(entry))
            assert inspect.isfunction(function) and function is Mine.step, entry
        """)

    def test_compiled_optimizer_and_schedule(self):
        self.assert_same("""
            optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.5))
            schedule = lr_scheduler.ExponentialLR(optimizer, 0.9)
            graphs = []
            def backend(graph, inputs):
                graphs.append(graph)
                return graph.forward
            @torch.compile(backend=backend, fullgraph=False)
            def update():
                optimizer.step()
                schedule.step()
            for _ in range(3):
                gradients(); update(); optimizer.zero_grad()
            print(len(graphs), schedule.get_last_lr(), model.weight.tolist())
        """)

    def test_detach_leaves_nothing(self):
        self.run_training("""
            import ampscope
            class Mine(lr_scheduler.LRScheduler):
                def step(self, epoch=None): pass
            ampscope.detach()
            from torch.optim import optimizer as module
            assert not module._global_optimizer_pre_hooks and not module._global_optimizer_post_hooks
            for owner, name in ((lr_scheduler.LRScheduler, 'step'), (lr_scheduler.ReduceLROnPlateau, 'step'),
                                (torch.amp.GradScaler, 'get_scale'), (torch.amp.GradScaler, 'step'),
                                (torch.amp.GradScaler, '__init__'), (Mine, 'step')):
                assert inspect.isfunction(vars(owner)[name]), owner
            assert '__init_subclass__' not in vars(lr_scheduler.LRScheduler)
        """)


if __name__ == "__main__":
    unittest.main()
