package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// zoo creates a table with two entities, one of low and one of high values.
func zoo() *aztables.Client {
	table, _ := newTable()
	typed := func(rowKey, text string, flag bool, count int, ratio float64, big, moment, id, data string) {
		insert(table, person(rowKey, entity{
			"Text": text, "Flag": flag, "Count": count, "Ratio": ratio,
			"Big": big, "Big@odata.type": "Edm.Int64",
			"Moment": moment, "Moment@odata.type": "Edm.DateTime",
			"Id": id, "Id@odata.type": "Edm.Guid",
			"Data": data, "Data@odata.type": "Edm.Binary",
		}))
	}
	typed("low", "o'low", false, -3, 0.5, "-5000000000", "2020-01-01T12:00:00Z", guid, "AAE=")
	typed("high", "high", true, 3, 1.5, "5000000000", "2021-01-01T12:00:00Z", strings.Replace(guid, "c", "d", 1), "AAI=")
	return table
}

// tableOf creates a table with entities of one partition.
func tableOf(count int) *aztables.Client {
	table, _ := newTable()
	var actions []aztables.TransactionAction
	for number := range count {
		actions = append(actions, action(aztables.TransactionTypeAdd, person(fmt.Sprintf("%04d", number), entity{
			"Number": number, "Even": number%2 == 0,
		})))
	}
	for chunk := range slices.Chunk(actions, 100) {
		ensure(submit(table, chunk...))
	}
	return table
}

func addQueries() {
	check("filters by values of every type", func() {
		table := zoo()
		for _, filter := range []string{
			"Text eq 'o''low'",
			"Text gt 'n'",
			"Flag eq false",
			"Count eq -3",
			"Count lt 0",
			"Ratio eq 0.5",
			"Ratio lt 1",
			"Big eq -5000000000L",
			"Big lt 0L",
			"Moment eq datetime'2020-01-01T12:00:00Z'",
			"Moment lt datetime'2020-06-01T00:00:00Z'",
			"Id eq guid'" + guid + "'",
			"Data eq X'0001'",
			"Data lt binary'0002'",
		} {
			found, _ := list(table, &aztables.ListEntitiesOptions{Filter: &filter})
			isTrue(rowKeys(found) == "low", "%s: %s", filter, rowKeys(found))
		}
	})
	check("filters by logic and by keys", func() {
		table := zoo()
		for filter, expected := range map[string]string{
			"not (Flag eq true)":                          "low",
			"Flag eq true or Count lt 0":                  "high low",
			"Flag eq true and Count lt 0":                 "",
			"PartitionKey eq 'se' and RowKey ge 'l'":      "low",
			"RowKey ne 'low' and Text ge 'h'":             "high",
			"Timestamp ge datetime'2020-01-01T00:00:00Z'": "high low",
			"Missing eq 'x'":                              "",
		} {
			found, _ := list(table, &aztables.ListEntitiesOptions{Filter: &filter})
			isTrue(rowKeys(found) == expected, "%s: %s", filter, rowKeys(found))
		}
	})
	check("refuses a filter that is none", func() {
		table := zoo()
		_, err := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: ptrTo("Count eq")}).NextPage(ctx)
		refused(err, 400, "InvalidInput")
	})
	check("selects properties", func() {
		table := zoo()
		found, _ := list(table, &aztables.ListEntitiesOptions{Select: ptrTo("RowKey,Count"), Filter: ptrTo("RowKey eq 'low'")})
		equal(found[0]["Count"], -3.0)
		equal(found[0]["RowKey"], "low")
		isTrue(found[0]["Text"] == nil && found[0]["PartitionKey"] == nil, "%v", found[0])
	})
	check("follows pages to the end", func() {
		table := tableOf(7)
		for top, expected := range map[int32][]int{1: {1, 1, 1, 1, 1, 1, 1}, 2: {2, 2, 2, 1}, 3: {3, 3, 1}, 7: {7}, 8: {7}} {
			entities, pages := list(table, &aztables.ListEntitiesOptions{Top: &top})
			equal(pages, expected)
			equal(rowKeys(entities), "0000 0001 0002 0003 0004 0005 0006")
		}
	})
	check("continues a query by its tokens", func() {
		table := tableOf(7)
		two := int32(2)
		options := aztables.ListEntitiesOptions{Top: &two, Filter: ptrTo("Even eq true"), Select: ptrTo("RowKey")}
		first := must(table.NewListEntitiesPager(&options).NextPage(ctx))
		options.NextPartitionKey, options.NextRowKey = first.NextPartitionKey, first.NextRowKey
		rest, _ := list(table, &options)
		equal(len(first.Entities), 2)
		equal(rowKeys(rest), "0004 0006")
	})
	check("follows more than a thousand entities", func() {
		entities, pages := list(tableOf(1050), nil)
		equal(len(entities), 1050)
		equal(pages, []int{1000, 50})
	})
	check("continues among odd keys", func() {
		table, _ := newTable()
		keys := []string{"'", "+ %", "a b", "é", "😀"}
		var expected []string
		for _, partitionKey := range keys {
			for _, rowKey := range keys {
				insert(table, entity{"PartitionKey": partitionKey, "RowKey": rowKey})
				expected = append(expected, rowKey)
			}
		}
		two := int32(2)
		entities, _ := list(table, &aztables.ListEntitiesOptions{Top: &two})
		equal(rowKeys(entities), strings.Join(sortedAsKeys(expected, keys), " "))
	})
}

// sortedAsKeys returns the row keys of a list of partitions, in the order of the keys.
func sortedAsKeys(rowKeys, keys []string) []string {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	var result []string
	for range len(rowKeys) / len(keys) {
		result = append(result, sorted...)
	}
	return result
}
