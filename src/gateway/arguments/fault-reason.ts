import type { Fault } from '../../domain/schema/check-run.ts';
import { allowedText, dependentText, maxNamesShown, namesText, valuesText } from '../../domain/schema/fault-text.ts';
import { kindOf } from '../../domain/schema/keyword-tests.ts';

const mostReasons = 3;

/**
 * Why a value does not fit its schema, for a record: which declared property, and what is allowed. `*` stands for every
 * index and name that the schema does not declare, as those are a part of the value.
 */
export function faultReasons(faults: readonly Fault[], declared: ReadonlySet<string>): string {
  const texts = [...new Set(faults.map((fault) => faultReason(fault, declared)))];
  const more = texts.length - mostReasons;
  return `${texts.slice(0, mostReasons).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

function faultReason({ keyword, limit, path, found, names = [] }: Fault, declared: ReadonlySet<string>): string {
  const at = (steps: readonly string[]) => steps.map((step) => (declared.has(step) ? step : '*')).join('.');
  const where = at(path) || 'the whole';
  switch (keyword) {
    case 'required':
      return `${where}: is missing`;
    case 'unknown': {
      const kind = path.length > 1 ? `${at(path.slice(0, -1))}: a property` : 'an argument';
      return `${kind} that is not declared; allowed: ${names.length > 0 ? namesText(names, maxNamesShown) : 'none'}`;
    }
    case 'false':
      return `${where}: nothing is allowed here`;
    case 'enum':
      return `${where}: allowed: ${valuesText(limit as readonly unknown[])}`;
    case 'type':
      return `${where}: found ${kindOf(found)}; allowed: ${[...new Set([limit].flat())].join(' or ')}`;
    case 'dependentRequired':
      return `${where}: ${dependentText(limit as readonly string[])}`;
    default:
      return `${where}: ${keyword}${limit === undefined || typeof limit === 'object' ? '' : ` ${allowedText(limit)}`} is not met`;
  }
}
