import type { Problem } from '../../../errors.ts';
import { type NamesBeside, namesBeside, sameNames } from '../../http/parameter-names.ts';
import { shown } from '../../problems/problems.ts';
import type { Argument } from './argument.ts';
import type { BodyKind, Destination } from './destinations.ts';
import type { WireStyle } from './wire-fields.ts';

const nested = ['brackets', 'indices', 'deep'];

/** An argument under the name that it has upstream. */
type NamedArgument = { name: string; wireName: string; style: WireStyle | undefined };

/** An argument of callers, and the upstream name of the constant that a receiver could read it as. */
type Alike = NamedArgument & { constant: string };

/**
 * The arguments of callers that could take the place of a constant beside them, for one set of constants after the other:
 * the names are compared once. Such arguments are not sent: a constant, and an argument that a view fixes, is what its
 * owner wants to be sent whatever the caller says. In JSON only case can be overlooked, elsewhere names have many
 * spellings.
 */
export function readAsConstants(
  all: readonly NamedArgument[],
  kind: BodyKind | 'query',
): (constants: ReadonlySet<string>) => Alike[] {
  if (kind === 'argument' || kind === 'template') return () => [];
  let beside: NamesBeside | undefined;
  return (constants) => {
    const fixed = [...all.keys()].filter((at) => constants.has(all[at]?.name ?? ''));
    if (fixed.length === 0 || fixed.length === all.length) return [];
    beside ??= (kind === 'json' ? sameNames : namesBeside)(all.map(({ wireName }) => wireName));
    const found = new Map<number, number>();
    for (const constant of fixed) for (const at of beside.alike(constant)) if (!found.has(at)) found.set(at, constant);
    const { folded } = beside;
    return all.flatMap((one, at) => {
      const constant = constants.has(one.name) ? undefined : found.get(at);
      if (constant === undefined || isAround(one, folded[at] ?? '', folded[constant] ?? '')) return [];
      return [{ ...one, constant: all[constant]?.wireName ?? '' }];
    });
  };
}

/**
 * Whether the constant is one of the names that the properties of an object get. The names that a caller makes are compared
 * at each call, so the object is sent.
 */
function isAround({ style }: NamedArgument, own: string, constant: string): boolean {
  if (style !== 'repeat' && !nested.includes(style ?? '')) return false;
  return own !== constant && !own.startsWith(`${constant}[`);
}

export function wireNameOf({ name, wire }: Argument): string {
  return wire.wire_name ?? name;
}

/** The path of the name that an argument has upstream. */
export function pathOfName({ name, wire }: Argument): string {
  return wire.wire_name === undefined ? `input_schema.${name}` : `input_schema.${name}.wire_name`;
}

/** The problems of the names of arguments that stand beside one another in the query or in the body. */
export function namesBesideProblems(
  declared: readonly Argument[],
  destinations: ReadonlyMap<string, Destination>,
  kind: BodyKind,
): Problem[] {
  const constants = new Set(declared.filter(({ wire }) => wire.value !== undefined).map(({ name }) => name));
  return (['query', 'body'] as const).flatMap((location) => {
    if (location === 'body' && (kind === 'argument' || kind === 'template')) return [];
    const beside = declared.filter(({ name }) => destinations.get(name) === location);
    const isExact = beside.some(({ wire }) => wire.wire_name !== undefined || wire.style !== undefined);
    const problems = isExact ? clashes(beside) : [];
    const told = new Set(problems.map(({ path }) => path));
    const named = beside.map((one) => ({ name: one.name, wireName: wireNameOf(one), style: one.wire.style }));
    const alike = readAsConstants(named, location === 'query' ? 'query' : kind)(constants);
    for (const { name, wireName, constant } of alike) {
      const path = pathOfName(declared.find((one) => one.name === name) as Argument);
      const message = `${shown(wireName)} could be read as ${shown(constant)}, which is a constant here, so it would not be sent; leave it out, or make one argument of both`;
      if (!told.has(path)) problems.push({ path, message });
    }
    return problems;
  });
}

function clashes(beside: readonly Argument[]): Problem[] {
  const problems: Problem[] = [];
  const first = new Map<string, string>();
  for (const argument of beside) {
    const wireName = wireNameOf(argument);
    const other = first.get(wireName);
    if (other !== undefined) {
      const message = `${shown(wireName)} is sent for the argument ${other} already`;
      problems.push({ path: pathOfName(argument), message });
    }
    first.set(wireName, argument.name);
    const holder = beside.find((one) => isHolderOf(one, wireName));
    if (holder) {
      const message = `${shown(wireName)} is a name that a property of the argument ${holder.name} can get; make one argument of both`;
      problems.push({ path: pathOfName(argument), message });
    }
  }
  return problems;
}

/** Whether an argument becomes parameters whose names begin like this one. */
function isHolderOf({ name, wire, type }: Argument, wireName: string): boolean {
  if (!nested.includes(wire.style ?? '') || ['string', 'number', 'integer', 'boolean'].includes(type ?? ''))
    return false;
  return wireName.startsWith(`${wire.wire_name ?? name}[`);
}
