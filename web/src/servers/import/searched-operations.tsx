import { Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconSearch } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import { visible } from '../../ui/text/visible.ts';
import { changed, type Operation, type PickGroup, searched } from './picking.ts';

/** Operations of a group that are shown at once, and operations in groups that a search opens. */
const shownAtFirst = 100;
const mostOpened = 200;

type Chosen = { chosen: ReadonlySet<string>; onChosen: (chosen: Set<string>) => void };
type Props = Chosen & { groups: readonly PickGroup[]; label?: string; actions?: ReactNode; children?: ReactNode };

/** Operations by their group, with a search. */
export function SearchedOperations({ groups, chosen, onChosen, label, actions, children }: Props) {
  const [search, setSearch] = useState('');
  const found = searched(groups, search);
  const isSearched = search.trim() !== '' || found.length === 1;
  let opened = 0;
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <TextInput
          aria-label={label ?? 'Search operations'}
          placeholder="Search"
          leftSection={<IconSearch size={16} />}
          flex="1 1 12rem"
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
        {actions}
      </Group>
      {found.length === 0 && <Text c="dimmed">No operation has these words.</Text>}
      {found.map((group) => {
        const startsOpen = isSearched && opened < mostOpened;
        opened += group.operations.length;
        return (
          <GroupOfOperations
            key={group.name}
            group={group}
            chosen={chosen}
            onChosen={onChosen}
            startsOpen={startsOpen}
          />
        );
      })}
      {children}
    </Stack>
  );
}

type GroupProps = Chosen & { group: PickGroup; startsOpen: boolean };

function GroupOfOperations({ group: { name, operations }, chosen, onChosen, startsOpen }: GroupProps) {
  const [isToggled, setToggled] = useState(false);
  const [shown, setShown] = useState(shownAtFirst);
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
          {operations.slice(0, shown).map((operation) => (
            <Choice key={operation.tool} operation={operation} chosen={chosen} onChosen={onChosen} />
          ))}
          {operations.length > shown && (
            <Button
              variant="subtle"
              size="compact-sm"
              className="th-more"
              onClick={() => setShown(shown + shownAtFirst)}
            >
              Show more of {visible(name)} ({operations.length - shown})
            </Button>
          )}
        </Stack>
      )}
    </div>
  );
}

/** What the notes of an operation are about. */
const meanings = { loosened: 'not checked', partial: 'left out', skipped: 'skipped' } as const;

function Choice({ operation, chosen, onChosen }: Chosen & { operation: Operation }) {
  const { tool, operation: request, tokens, outcome = 'whole', notes = [], deprecated } = operation;
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
