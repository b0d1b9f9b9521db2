// Run by `helm test`, in a pod: asks the leader at INLAY whether it is ready, and whether its installation is complete.
const until = Date.now() + 60_000;
const check = async () => {
  const answer = await fetch(`${process.env.INLAY}/readyz?verbose`, { signal: AbortSignal.timeout(5_000) });
  const problems = (await answer.text()).split("\n").filter((line) => /^\[[-!]\]/.test(line));
  if (problems.length > 0 || !answer.ok) throw new Error(problems.join("\n"));
};
const attempt = async () => {
  try {
    await check();
    console.log("Inlay is ready.");
  } catch ({ message, cause }) {
    if (Date.now() < until) return setTimeout(attempt, 2_000);
    console.error(`${process.env.INLAY}: ${cause?.message ?? message}`);
    process.exitCode = 1;
  }
};
void attempt();
