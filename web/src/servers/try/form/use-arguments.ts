import { useState } from 'react';
import type { JsonObject } from '../../../answers.ts';
import { type Argument, type Typed, typedOf, valuesOf } from './arguments.ts';

/**
 * The arguments of the form. Those of a recorded call stay exactly as they were, also where a text could not say it (an
 * empty text, an empty list), until the person types something else.
 */
export function useArguments(args: readonly Argument[], recorded: JsonObject | undefined) {
  const [typed, setTyped] = useState<Typed>(() => typedOf(args, recorded ?? {}));
  const [kept, setKept] = useState<JsonObject>(recorded ?? {});
  const names = args.map(({ name }) => name);
  const without = (dropped: readonly string[]) => (before: JsonObject) =>
    Object.fromEntries(Object.entries(before).filter(([name]) => !dropped.includes(name)));
  const hidden = Object.keys(kept).filter((name) => !names.includes(name));
  return {
    typed,
    values: { ...valuesOf(args, typed), ...kept },
    /** Arguments of the recorded call that have no field. */
    hidden,
    leaveOutHidden: () => setKept(without(hidden)),
    type(argument: string, value: string | string[] | undefined) {
      setTyped((before) => ({ ...before, [argument]: value }));
      setKept(without([argument]));
    },
  };
}
