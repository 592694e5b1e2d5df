import { Badge, Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconSearch } from '@tabler/icons-react';
import { useState } from 'react';
import type { ImportPlan } from '../../answers.ts';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/visible.ts';
import { changed, groupsOf, type Operation, type PickGroup, proposedOf, searched, tokensOf } from './picking.ts';

const manyTools = 40;
const manyTokens = 10_000;

type Props = { plan: ImportPlan; chosen: ReadonlySet<string>; onChosen: (chosen: Set<string>) => void };

/** Operations by their tag, with what their tools cost in every conversation. */
export function OperationPicker({ plan, chosen, onChosen }: Props) {
  const [search, setSearch] = useState('');
  const groups = searched(groupsOf(plan), search);
  const isOpen = search.trim() !== '' || groups.length === 1;
  const { operations, skipped } = plan.operations;
  const hidden = operations - plan.report.length;
  return (
    <Section
      title="Operations"
      text={`${plan.title} (${plan.format}) has ${operations} operations. Agents work best with a few dozen tools.`}
      actions={<Total plan={plan} chosen={chosen} />}
    >
      <Stack gap="sm">
        <Group gap="sm">
          <TextInput
            aria-label="Search operations"
            placeholder="Search"
            leftSection={<IconSearch size={16} />}
            flex="1 1 12rem"
            value={search}
            onChange={(event) => setSearch(event.currentTarget.value)}
          />
          <Button variant="default" onClick={() => onChosen(proposedOf(plan))}>
            Choose the proposal
          </Button>
          <Button variant="default" onClick={() => onChosen(new Set())} disabled={chosen.size === 0}>
            Choose none
          </Button>
        </Group>
        {groups.length === 0 && <Text c="dimmed">No operation has these words.</Text>}
        {groups.map((group) => (
          <GroupOfOperations key={group.name} group={group} chosen={chosen} onChosen={onChosen} startsOpen={isOpen} />
        ))}
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
      </Stack>
    </Section>
  );
}

function Total({ plan, chosen }: Omit<Props, 'onChosen'>) {
  const tokens = tokensOf(plan, chosen);
  const isMuch = chosen.size > manyTools || tokens > manyTokens;
  return (
    <Badge size="lg" color={isMuch ? 'yellow' : 'green'} variant="light" aria-live="polite" className="th-total">
      {chosen.size} {chosen.size === 1 ? 'tool' : 'tools'}, about {tokens.toLocaleString('en')} tokens
    </Badge>
  );
}

type GroupProps = Omit<Props, 'plan'> & { group: PickGroup; startsOpen: boolean };

function GroupOfOperations({ group: { name, operations }, chosen, onChosen, startsOpen }: GroupProps) {
  const [isToggled, setToggled] = useState(false);
  const isOpen = startsOpen !== isToggled;
  const tools = operations.map(({ tool }) => tool);
  const count = tools.filter((tool) => chosen.has(tool)).length;
  const isAll = count === tools.length;
  return (
    <div className="th-pick-group">
      <Group gap="xs" wrap="nowrap" justify="space-between">
        <Checkbox
          label={visible(name)}
          checked={isAll}
          indeterminate={count > 0 && !isAll}
          onChange={(event) => onChosen(changed(chosen, tools, event.currentTarget.checked))}
        />
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          aria-expanded={isOpen}
          rightSection={isOpen ? <IconChevronDown size={15} /> : <IconChevronRight size={15} />}
          aria-label={`${count} of ${tools.length} operations of ${visible(name)}`}
          onClick={() => setToggled(!isToggled)}
        >
          {count} of {tools.length}
        </Button>
      </Group>
      {isOpen && (
        <Stack gap={6} pl="xl" pt="xs">
          {operations.map((operation) => (
            <Choice key={operation.tool} operation={operation} chosen={chosen} onChosen={onChosen} />
          ))}
        </Stack>
      )}
    </div>
  );
}

/** What the notes of an operation are about. */
const meanings = { loosened: 'not checked', partial: 'left out', skipped: 'skipped' } as const;

function Choice({ operation, chosen, onChosen }: Omit<Props, 'plan'> & { operation: Operation }) {
  const { tool, operation: request, tokens, outcome, notes, deprecated } = operation;
  const limits = outcome === 'whole' ? [] : [`${meanings[outcome]}: ${notes.join(', ')}`];
  const remarks = [...limits, ...(deprecated ? ['deprecated'] : [])];
  return (
    <Checkbox
      checked={chosen.has(tool)}
      onChange={(event) => onChosen(changed(chosen, [tool], event.currentTarget.checked))}
      label={
        <>
          <span className="th-mono">{visible(tool)}</span>{' '}
          <Text span size="xs" c="dimmed">
            {tokens} tokens
          </Text>
        </>
      }
      description={
        <>
          {visible(request)}
          {remarks.length > 0 && <span className="th-remarks"> {visible(remarks.join('; '))}</span>}
        </>
      }
    />
  );
}
