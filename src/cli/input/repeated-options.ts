import { InvalidArgumentError } from 'commander';

/** An option that may be given several times, each time with a text. */
export function collectText(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** The option that names the variables which files of servers may have. */
export const variableOption = [
  '--env <NAME>',
  'variable that the files may have as a source of a secret; may be given several times',
  collectText,
] as const;

/** An option that may be given several times, each time as `name=value`. @throws InvalidArgumentError */
export function collectAnswer(text: string, before: Record<string, string> = {}): Record<string, string> {
  const equals = text.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('allowed: name=value, with a name from the plan');
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}
