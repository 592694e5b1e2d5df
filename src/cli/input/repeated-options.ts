import { InvalidArgumentError } from 'commander';

/** An option that may be given several times, each time with a text. */
export function collectText(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** An option that may be given several times, each time as `name=value`. @throws InvalidArgumentError */
export function collectAnswer(text: string, before: Record<string, string> = {}): Record<string, string> {
  const equals = text.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('allowed: name=value, with a name from the plan');
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}
