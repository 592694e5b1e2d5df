import { Badge, Button, Text } from '@mantine/core';
import type { ImportPlan } from '../../answers.ts';
import { Section } from '../../ui/section.tsx';
import { groupsOfPlan, proposedOf, tokensOf } from './picking.ts';
import { SearchedOperations } from './searched-operations.tsx';

const manyTools = 40;
const manyTokens = 10_000;

type Props = { plan: ImportPlan; chosen: ReadonlySet<string>; onChosen: (chosen: Set<string>) => void };

/** Operations by their tag, with what their tools cost in every conversation. */
export function OperationPicker({ plan, chosen, onChosen }: Props) {
  const { operations, skipped } = plan.operations;
  const hidden = operations - plan.report.length;
  return (
    <Section
      title="Operations"
      text={`${plan.title} (${plan.format}) has ${operations} operations. Agents work best with a few dozen tools.`}
      actions={<Total plan={plan} chosen={chosen} />}
    >
      <SearchedOperations
        groups={groupsOfPlan(plan)}
        chosen={chosen}
        onChosen={onChosen}
        actions={
          <>
            <Button variant="default" onClick={() => onChosen(proposedOf(plan))}>
              Choose the proposal
            </Button>
            <Button variant="default" onClick={() => onChosen(new Set())} disabled={chosen.size === 0}>
              Choose none
            </Button>
          </>
        }
      >
        {skipped > 0 && (
          <Text size="sm" c="dimmed">
            {skipped} operations cannot become tools; the command line lists them with their reasons.
          </Text>
        )}
        {hidden > 0 && (
          <Text size="sm" c="dimmed">
            {hidden} more operations are not shown; import them with the command line.
          </Text>
        )}
      </SearchedOperations>
    </Section>
  );
}

function Total({ plan, chosen }: Omit<Props, 'onChosen'>) {
  const tokens = tokensOf(plan.report, chosen);
  const isMuch = chosen.size > manyTools || tokens > manyTokens;
  return (
    <Badge size="lg" color={isMuch ? 'yellow' : 'green'} variant="light" aria-live="polite" className="th-total">
      {chosen.size} {chosen.size === 1 ? 'tool' : 'tools'}, about {tokens.toLocaleString('en')} tokens
    </Badge>
  );
}
