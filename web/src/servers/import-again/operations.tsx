import { Badge, Stack } from '@mantine/core';
import type { ImportAgainPlan } from '../../answers.ts';
import { Folded } from '../../ui/folded.tsx';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/text/visible.ts';
import { groupsOf, tokensOf } from '../import/picking.ts';
import { SearchedOperations } from '../import/searched-operations.tsx';
import { MoreOf } from './more-of.tsx';

/** Tools whose operation is no longer in the description. */
export function GoneTools({ plan: { gone, counts } }: { plan: ImportAgainPlan }) {
  if (counts.gone === 0) return null;
  return (
    <Section
      title={counts.gone === 1 ? '1 tool to be disabled' : `${counts.gone} tools to be disabled`}
      text="Their operations are gone from the description. They stay in the configuration, hidden from agents."
    >
      <Stack gap={4}>
        <MoreOf entries={gone} count={counts.gone} of="tools to be disabled">
          {(tool) => (
            <div key={tool} className="th-mono">
              {visible(tool)}
            </div>
          )}
        </MoreOf>
      </Stack>
    </Section>
  );
}

type Props = {
  plan: ImportAgainPlan;
  chosen: ReadonlySet<string>;
  onChosen: (chosen: ReadonlySet<string>) => void;
};

/** Operations without a tool: the new ones, and behind a button those that nobody wanted so far. */
export function NewOperations({ plan: { offered, counts }, chosen, onChosen }: Props) {
  if (counts.offered === 0) return null;
  const fresh = offered.filter((operation) => operation.new);
  const others = offered.filter((operation) => !operation.new);
  const hidden = counts.offered - offered.length;
  return (
    <Section
      title={fresh.length > 0 ? 'New operations' : 'Operations without a tool'}
      text="They have no tool, and nothing is added by itself. Choose what agents should have."
      actions={
        <Badge size="lg" variant="light" aria-live="polite" className="th-total">
          {chosen.size} to add, about {tokensOf(offered, chosen).toLocaleString('en')} tokens
        </Badge>
      }
    >
      <Stack gap="sm">
        {fresh.length > 0 && <SearchedOperations groups={groupsOf(fresh, [])} chosen={chosen} onChosen={onChosen} />}
        {others.length > 0 && (
          <Folded label={`Show ${others.length} other operations`}>
            <SearchedOperations
              label="Search the other operations"
              groups={groupsOf(others, [])}
              chosen={chosen}
              onChosen={onChosen}
            />
          </Folded>
        )}
        {hidden > 0 && <div>{hidden} more operations are not shown; the command line adds them.</div>}
      </Stack>
    </Section>
  );
}
