//! Asking a bundle.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::vm::RegoVM;
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value};

use super::bundle::{Bundle, CHECK_INTERVAL, TIME_LIMIT};

/// Whether the virtual machine serves a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// The interpreter answers.
    NotUsed,
    /// The machine answers, and is sampled.
    Serving,
    /// The machine gave a wrong answer once; the interpreter answers.
    Demoted,
}

/// Why there is no answer. None of these is ever an allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The rule is undefined for this input.
    #[error("the policy gives no answer for this input")]
    Undefined,
    /// The evaluation failed, or ran into a limit.
    #[error("the policy failed: {0}")]
    Failed(String),
    /// The machine and the interpreter disagree.
    #[error("the policy's two evaluators disagree; the quicker one is no longer used")]
    Disagreement,
    /// The same question was answered differently before.
    #[error(
        "the policy answered the same question differently before; what it said is no longer used"
    )]
    Inconstant,
}

impl EvalError {
    /// The reserved reason that goes into the log.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Undefined => "runtime_error:policy_undefined",
            Self::Failed(_) => "runtime_error:policy_failed",
            Self::Disagreement | Self::Inconstant => "runtime_error:policy_disagreement",
        }
    }
}

/// Why the virtual machine may not serve a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The bundle uses a construct that the machine is not trusted with.
    #[error("the policies use {0}")]
    Doubtful(&'static str),
    /// The machine cannot run the bundle.
    #[error("the machine cannot run the policies: {0}")]
    Uncompilable(String),
    /// The machine answers differently.
    #[error("the machine and the interpreter disagree on trial input {0}")]
    Disagreement(usize),
    /// Nothing was tried.
    #[error("there is no trial input")]
    Untried,
}

/// One set of evaluators; each thread that evaluates at the same time has its own.
pub(super) struct Evaluator {
    interpreter: Engine,
    machine: Option<RegoVM>,
}

impl Bundle {
    /// Lets the virtual machine serve, if the syntax is plain and both evaluators give the same
    /// answer to every trial input.
    pub fn admit_machine(&mut self, trials: &[Value]) -> Result<(), NotAdmitted> {
        if let Some(construct) = self.syntax.doubtful.iter().next() {
            return Err(NotAdmitted::Doubtful(construct));
        }
        self.try_machine(trials)
    }

    /// The same, whatever the syntax.
    pub(crate) fn try_machine(&mut self, trials: &[Value]) -> Result<(), NotAdmitted> {
        if trials.is_empty() {
            return Err(NotAdmitted::Untried);
        }
        let uncompilable = |error: &dyn ToString| NotAdmitted::Uncompilable(error.to_string());
        let entry = self.entry.as_str();
        let policy = self
            .prototype
            .compile_with_entrypoint(&entry.into())
            .map_err(|error| uncompilable(&error))?;
        let program = Compiler::compile_from_policy(&policy, &[entry])
            .map_err(|error| uncompilable(&error))?;
        self.program = Some(program);
        self.idle
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let mut evaluator = self.evaluator();
        for (number, trial) in trials.iter().enumerate() {
            if !same(
                &evaluator.by_machine(trial),
                &evaluator.by_interpreter(&self.entry, trial),
            ) {
                self.program = None;
                return Err(NotAdmitted::Disagreement(number));
            }
        }
        Ok(())
    }

    /// From now on the interpreter answers.
    pub fn dismiss_machine(&mut self) {
        self.program = None;
    }

    /// Who answers.
    pub fn machine(&self) -> Machine {
        match (&self.program, self.demoted.load(Ordering::Acquire)) {
            (None, _) => Machine::NotUsed,
            (Some(_), false) => Machine::Serving,
            (Some(_), true) => Machine::Demoted,
        }
    }

    /// The answer of the bundle's rule to an input.
    pub fn evaluate(&self, input: &Value) -> Result<Value, EvalError> {
        let number = self.evaluations.fetch_add(1, Ordering::Relaxed);
        self.ask(input, number.is_multiple_of(SAMPLE))
    }

    /// The same, from both evaluators.
    pub fn confirm(&self, input: &Value) -> Result<Value, EvalError> {
        self.ask(input, true)
    }

    fn ask(&self, input: &Value, sampled: bool) -> Result<Value, EvalError> {
        if self.syntax.calls.contains("walk") && !is_walkable(input, 1, &mut { MOST_STEPS }) {
            return Err(EvalError::Failed(
                "the input is too large for `walk`".to_owned(),
            ));
        }
        let mut evaluator = self.take();
        let answer = self.answer(&mut evaluator, input, sampled);
        self.give_back(evaluator);
        match answer? {
            Value::Undefined => Err(EvalError::Undefined),
            value => Ok(value),
        }
    }

    fn answer(
        &self,
        evaluator: &mut Evaluator,
        input: &Value,
        sampled: bool,
    ) -> Result<Value, EvalError> {
        if self.machine() != Machine::Serving {
            return evaluator.by_interpreter(&self.entry, input);
        }
        let answer = evaluator.by_machine(input);
        if sampled && !same(&answer, &evaluator.by_interpreter(&self.entry, input)) {
            // FAIL-CLOSED: nobody knows which of the two is right for this action.
            self.demoted.store(true, Ordering::Release);
            return Err(EvalError::Disagreement);
        }
        answer
    }

    fn evaluator(&self) -> Evaluator {
        let machine = self.program.as_ref().map(|program| {
            let mut machine = RegoVM::new();
            machine.load_program(program.clone());
            // FAIL-CLOSED: as the interpreter, or an error in a condition would only be undefined,
            // and what it should deny allowed.
            machine.set_strict_builtin_errors(true);
            machine.set_max_instructions(MAX_INSTRUCTIONS);
            machine.set_execution_timer_config(Some(ExecutionTimerConfig {
                limit: TIME_LIMIT,
                check_interval: CHECK_INTERVAL,
            }));
            machine
        });
        let machine = machine.and_then(|mut machine| {
            machine
                .set_data(self.data.clone())
                .is_ok()
                .then_some(machine)
        });
        Evaluator {
            interpreter: self.prototype.clone(),
            machine,
        }
    }

    fn take(&self) -> Evaluator {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        idle.unwrap_or_else(|| self.evaluator())
    }

    fn give_back(&self, evaluator: Evaluator) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(evaluator);
        }
    }
}

impl Evaluator {
    fn by_interpreter(&mut self, entry: &str, input: &Value) -> Result<Value, EvalError> {
        self.interpreter.set_input(input.clone());
        self.interpreter
            .eval_rule(entry.to_owned())
            .map_err(|error| EvalError::Failed(error.to_string()))
    }

    fn by_machine(&mut self, input: &Value) -> Result<Value, EvalError> {
        let Some(machine) = &mut self.machine else {
            return Err(EvalError::Failed(
                "the policy data cannot be loaded".to_owned(),
            ));
        };
        machine.set_input(input.clone());
        machine
            .execute()
            .map_err(|error| EvalError::Failed(error.to_string()))
    }
}

/// `walk` gives each value with the whole way to it, all at once.
fn is_walkable(value: &Value, depth: usize, steps: &mut usize) -> bool {
    let Some(left) = steps.checked_sub(depth) else {
        return false;
    };
    *steps = left;
    match value {
        Value::Array(elements) => elements
            .iter()
            .all(|one| is_walkable(one, depth + 1, steps)),
        Value::Set(elements) => elements
            .iter()
            .all(|one| is_walkable(one, depth + 1, steps)),
        Value::Object(members) => members
            .iter()
            .all(|(_, one)| is_walkable(one, depth + 1, steps)),
        _ => true,
    }
}

/// Two failures are the same answer, whatever their words: both refuse.
fn same(one: &Result<Value, EvalError>, other: &Result<Value, EvalError>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one == other,
        (one, other) => one.is_err() && other.is_err(),
    }
}

/// One of this many answers of the machine is compared with the interpreter's.
const SAMPLE: u64 = 256;
const MAX_INSTRUCTIONS: usize = 1_000_000;
const MAX_IDLE: usize = 16;
const MOST_STEPS: usize = 2_000_000;
