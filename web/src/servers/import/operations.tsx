import { Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconSearch } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import type { ImportPlan } from '../../answers.ts';
import { MoreOf } from '../../ui/more-of.tsx';
import { visible } from '../../ui/text/visible.ts';

type Reported = ImportPlan['report'][number];

/** Operation to choose, from an import plan or a reimport. */
type Operation = Pick<Reported, 'operation' | 'tool' | 'group' | 'tokens' | 'deprecated'> &
  Partial<Pick<Reported, 'outcome' | 'notes'>>;

/** Maximum number of operations in groups that a search expands. */
const mostOpened = 200;

/** Selected operations, by tool name. */
type Chosen = { chosen: ReadonlySet<string>; onChosen: (chosen: ReadonlySet<string>) => void };
type Props = Chosen & {
  operations: readonly Operation[];
  /** Groups in order. Others follow. */
  order?: readonly string[];
  label?: string;
  actions?: ReactNode;
};

/** Operations by group, with a search. */
export function Operations({ operations, order = [], label = 'Search operations', actions, ...choice }: Props) {
  const [search, setSearch] = useState('');
  const words = search.toLowerCase().split(/\s+/);
  const found = operations.filter(({ operation, tool, group }) => {
    const text = `${operation} ${tool} ${group}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const groups = Map.groupBy(found, ({ group }) => group);
  const isSearched = search.trim() !== '' || groups.size === 1;
  let opened = 0;
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <TextInput
          aria-label={label}
          placeholder="Search"
          leftSection={<IconSearch size={16} />}
          flex="1 1 12rem"
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
        {actions}
      </Group>
      {found.length === 0 && <Text c="dimmed">No matching operations.</Text>}
      {[...new Set([...order, ...groups.keys()])].map((name) => {
        const ofGroup = groups.get(name);
        if (!ofGroup) return null;
        const startsOpen = isSearched && opened < mostOpened;
        opened += ofGroup.length;
        return <OneGroup key={name} name={visible(name)} operations={ofGroup} startsOpen={startsOpen} {...choice} />;
      })}
    </Stack>
  );
}

type GroupProps = Chosen & { name: string; operations: readonly Operation[]; startsOpen: boolean };

function OneGroup({ name, operations, chosen, onChosen, startsOpen }: GroupProps) {
  const [isToggled, setToggled] = useState(false);
  const isOpen = startsOpen !== isToggled;
  const count = operations.filter(({ tool }) => chosen.has(tool)).length;
  const isAll = count === operations.length;
  const choose = (of: readonly Operation[], isChosen: boolean) => {
    const tools = new Set(of.map(({ tool }) => tool));
    onChosen(isChosen ? chosen.union(tools) : chosen.difference(tools));
  };
  return (
    <div className="th-pick-group">
      <Group gap="xs" wrap="nowrap" justify="space-between">
        <Checkbox
          label={name}
          checked={isAll}
          indeterminate={count > 0 && !isAll}
          onChange={(event) => choose(operations, event.currentTarget.checked)}
        />
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          aria-expanded={isOpen}
          rightSection={isOpen ? <IconChevronDown size={15} /> : <IconChevronRight size={15} />}
          aria-label={`${count} of ${operations.length} operations in ${name}`}
          onClick={() => setToggled(!isToggled)}
        >
          {count} of {operations.length}
        </Button>
      </Group>
      {isOpen && (
        <Stack gap={6} pl="xl" pt="xs">
          <MoreOf entries={operations} count={operations.length} of={`of ${name}`} atOnce={100}>
            {(operation) => (
              <Checkbox
                key={operation.tool}
                checked={chosen.has(operation.tool)}
                onChange={(event) => choose([operation], event.currentTarget.checked)}
                {...textsOf(operation)}
              />
            )}
          </MoreOf>
        </Stack>
      )}
    </div>
  );
}

/** Meaning of an operation's notes, by outcome. */
const meanings = { loosened: 'not validated', partial: 'omitted', skipped: 'skipped' } as const;

function textsOf({ tool, operation, tokens, outcome = 'whole', notes = [], deprecated }: Operation) {
  const limits = outcome === 'whole' ? [] : [`${meanings[outcome]}: ${notes.join(', ')}`];
  const remarks = [...limits, ...(deprecated ? ['deprecated'] : [])];
  return {
    label: (
      <>
        <span className="th-mono">{visible(tool)}</span>{' '}
        <Text span size="xs" c="dimmed">
          {tokens} tokens
        </Text>
      </>
    ),
    description: (
      <>
        {visible(operation)}
        {remarks.length > 0 && <span className="th-remarks"> {visible(remarks.join('; '))}</span>}
      </>
    ),
  };
}

export function tokensOf(operations: readonly Operation[], chosen: ReadonlySet<string>): number {
  return operations.reduce((sum, { tool, tokens }) => sum + (chosen.has(tool) ? tokens : 0), 0);
}

/**
 * Converts the selected tools to entries of `include`. Uses their requests, because a tag may have the name of a tool.
 */
export function selectorsOf(operations: readonly Operation[], chosen: ReadonlySet<string>): string[] {
  return operations
    .filter(({ tool }) => chosen.has(tool))
    .map(({ operation, tool }) => (/[*…]|\(\d+\)$/.test(operation) ? tool : operation));
}
