/** `inlay resume`: lets Inlay process a suspended object again. */
import type { Command } from "commander";
import { suspending } from "./suspend.ts";

export const resumeCommand = (): Command =>
  suspending(
    "resume",
    false,
    "If git holds spec.suspend: true, remove it there instead: your GitOps tool suspends the object again at its next sync.",
  );
