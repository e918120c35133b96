package main

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func action(kind aztables.TransactionType, value entity, etags ...azcore.ETag) aztables.TransactionAction {
	result := aztables.TransactionAction{ActionType: kind, Entity: marshal(value)}
	if len(etags) > 0 {
		result.IfMatch = &etags[0]
	}
	return result
}

func submit(table *aztables.Client, actions ...aztables.TransactionAction) error {
	_, err := table.SubmitTransaction(ctx, actions, nil)
	return err
}

// crowd creates a table with five entities in one batch.
func crowd() *aztables.Client {
	table, _ := newTable()
	var actions []aztables.TransactionAction
	for _, rowKey := range []string{"a", "b", "c", "d", "e"} {
		actions = append(actions, action(aztables.TransactionTypeAdd, person(rowKey, london)))
	}
	ensure(submit(table, actions...))
	return table
}

func stored(table *aztables.Client) string {
	entities, _ := list(table, nil)
	var lines []string
	for _, one := range entities {
		lines = append(lines, fmt.Sprintf("%v:%v,%v", one["RowKey"], one["Age"], one["City"]))
	}
	return strings.Join(lines, " ")
}

// undone checks that a batch is refused for its third action, and that nothing of it stays.
func undone(table *aztables.Client, status int, code string, third aztables.TransactionAction) {
	before := stored(table)
	err := submit(table,
		action(aztables.TransactionTypeInsertReplace, person("b", entity{"Age": 9})),
		action(aztables.TransactionTypeDelete, person("c")),
		third,
	)
	text := fmt.Sprint(err)
	isTrue(err != nil, "the batch was not refused")
	isTrue(strings.Contains(text, fmt.Sprintf("HTTP/1.1 %d ", status)), "not %d: %s", status, text)
	isTrue(strings.Contains(text, fmt.Sprintf(`"code":"%s"`, code)), "not %s: %s", code, text)
	isTrue(strings.Contains(text, `"value":"2:`), "not the third: %s", text)
	equal(stored(table), before)
}

func addBatches() {
	check("writes every kind of operation in a batch", func() {
		table := crowd()
		changed := entity{"Age": 2}
		ensure(submit(table,
			action(aztables.TransactionTypeAdd, person("f", changed)),
			action(aztables.TransactionTypeDelete, person("a")),
			action(aztables.TransactionTypeUpdateMerge, person("b", changed)),
			action(aztables.TransactionTypeUpdateReplace, person("c", changed)),
			action(aztables.TransactionTypeInsertMerge, person("d", changed)),
			action(aztables.TransactionTypeInsertReplace, person("e", changed)),
			action(aztables.TransactionTypeInsertMerge, person("g", changed)),
			action(aztables.TransactionTypeInsertReplace, person("h", changed)),
		))
		equal(stored(table), "b:2,London c:2,<nil> d:2,London e:2,<nil> f:2,<nil> g:2,<nil> h:2,<nil>")
	})
	check("changes the versions that a batch names", func() {
		table, _ := newTable()
		first, second := insert(table, person("a")), insert(table, person("b"))
		ensure(submit(table,
			action(aztables.TransactionTypeUpdateReplace, person("a", london), first),
			action(aztables.TransactionTypeDelete, person("b"), second),
		))
		equal(stored(table), "a:36,London")
	})
	check("undoes a batch with an entity that exists", func() {
		undone(crowd(), 409, "EntityAlreadyExists", action(aztables.TransactionTypeAdd, person("a")))
	})
	check("undoes a batch with an entity that is missing", func() {
		undone(crowd(), 404, "ResourceNotFound", action(aztables.TransactionTypeDelete, person("nobody")))
	})
	check("undoes a batch with another version", func() {
		undone(crowd(), 412, "UpdateConditionNotSatisfied",
			action(aztables.TransactionTypeUpdateMerge, person("a", london), otherETag))
	})
	check("undoes a batch with an entity that is none", func() {
		undone(crowd(), 400, "PropertyNameInvalid",
			action(aztables.TransactionTypeInsertMerge, person("d", entity{"a-b": 1})))
	})
	check("undoes a batch that names an entity twice", func() {
		twice := action(aztables.TransactionTypeInsertMerge, person("b"))
		if isCosmos { // which refuses the batch as a whole
			table := crowd()
			before := stored(table)
			refused(submit(table, twice, twice), 400, "InvalidDuplicateRow")
			equal(stored(table), before)
			return
		}
		undone(crowd(), 400, "InvalidDuplicateRow", twice)
	})
	check("writes a hundred entities in a batch, and no more", func() {
		table, _ := newTable()
		var actions []aztables.TransactionAction
		for number := range 100 {
			actions = append(actions, action(aztables.TransactionTypeAdd, person(fmt.Sprintf("%03d", number))))
		}
		ensure(submit(table, actions...))
		entities, _ := list(table, nil)
		equal(len(entities), 100)
		err := submit(table, append(actions, action(aztables.TransactionTypeAdd, person("more")))...)
		isTrue(strings.Contains(fmt.Sprint(err), "InvalidInput"), "%v", err)
	})
	check("serves odd keys and values in a batch", func() {
		table, _ := newTable()
		all := func(kind aztables.TransactionType) (actions []aztables.TransactionAction) {
			for _, odd := range oddKeys {
				actions = append(actions, action(kind, person(odd, entity{"Value": "--changeset_x\r\n\r\n\x00" + odd})))
			}
			return actions
		}
		for _, kind := range []aztables.TransactionType{
			aztables.TransactionTypeAdd,
			aztables.TransactionTypeInsertMerge,
			aztables.TransactionTypeInsertReplace,
			aztables.TransactionTypeUpdateMerge,
			aztables.TransactionTypeUpdateReplace,
		} {
			ensure(submit(table, all(kind)...))
		}
		for _, odd := range oddKeys {
			equal(get(table, "se", odd)["Value"], "--changeset_x\r\n\r\n\x00"+odd)
		}
		ensure(submit(table, all(aztables.TransactionTypeDelete)...))
		equal(stored(table), "")
	})
}
