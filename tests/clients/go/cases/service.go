package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func listTables(query *aztables.ListTablesOptions) (names []string, pages []int) {
	pager := service.NewListTablesPager(query)
	for pager.More() {
		page := must(pager.NextPage(ctx))
		for _, table := range page.Tables {
			names = append(names, *table.Name)
		}
		pages = append(pages, len(page.Tables))
	}
	return names, pages
}

func addService() {
	check("creates, lists and deletes a table", func() {
		name := newName()
		filter := fmt.Sprintf("TableName eq '%s'", name)
		equal(*must(service.CreateTable(ctx, name, nil)).TableName, name)
		names, _ := listTables(&aztables.ListTablesOptions{Filter: &filter})
		equal(names, []string{name})
		must(service.DeleteTable(ctx, name, nil))
		names, _ = listTables(&aztables.ListTablesOptions{Filter: &filter})
		equal(len(names), 0)
	})
	check("lists tables in pages", func() {
		prefix := newName()
		var expected []string
		for _, letter := range []string{"a", "b", "c", "d", "e"} {
			must(service.CreateTable(ctx, prefix+letter, nil))
			expected = append(expected, prefix+letter)
		}
		filter := fmt.Sprintf("TableName ge '%sa' and TableName le '%sz'", prefix, prefix)
		two := int32(2)
		names, pages := listTables(&aztables.ListTablesOptions{Filter: &filter, Top: &two})
		equal(names, expected)
		equal(pages, []int{2, 2, 1})
		pager := service.NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter, Top: &two})
		first := must(pager.NextPage(ctx))
		names, _ = listTables(&aztables.ListTablesOptions{Filter: &filter, NextTableName: first.NextTableName})
		equal(names, expected[2:])
	})
	check("refuses a table that exists", func() {
		_, name := newTable()
		_, err := service.CreateTable(ctx, name, nil)
		refused(err, 409, "TableAlreadyExists")
	})
	check("refuses to delete a missing table", func() {
		_, err := service.DeleteTable(ctx, newName(), nil)
		refused(err, 404, "ResourceNotFound")
	})
	checkStorage("refuses a table whose name is none", "Azure Cosmos DB takes almost any name", func() {
		_, err := service.CreateTable(ctx, "1a", nil)
		refused(err, 400, "InvalidResourceName")
		_, err = service.CreateTable(ctx, strings.Repeat("a", 64), nil)
		refused(err, 400, "OutOfRangeInput")
	})
	checkStorage("keeps the properties of the service", "Azure Cosmos DB has no service properties", func() {
		before := must(service.GetProperties(ctx, nil)).ServiceProperties
		week := &aztables.RetentionPolicy{Enabled: to.Ptr(true), Days: to.Ptr(int32(7))}
		never := &aztables.RetentionPolicy{Enabled: to.Ptr(false)}
		properties := aztables.ServiceProperties{
			Logging: &aztables.Logging{Version: ptrTo("1.0"), Read: to.Ptr(true), Write: to.Ptr(true), Delete: to.Ptr(false),
				RetentionPolicy: week},
			HourMetrics: &aztables.Metrics{Version: ptrTo("1.0"), Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true),
				RetentionPolicy: week},
			MinuteMetrics: &aztables.Metrics{Version: ptrTo("1.0"), Enabled: to.Ptr(false), RetentionPolicy: never},
			Cors: []*aztables.CorsRule{{
				AllowedOrigins: ptrTo("https://a.example,https://b.example"), AllowedMethods: ptrTo("GET,MERGE"),
				AllowedHeaders: ptrTo("x-ms-*"), ExposedHeaders: ptrTo("x-ms-*,etag"), MaxAgeInSeconds: to.Ptr(int32(60)),
			}},
		}
		must(service.SetProperties(ctx, properties, nil))
		defer func() { must(service.SetProperties(ctx, before, nil)) }()
		equal(must(service.GetProperties(ctx, nil)).ServiceProperties, properties)
	})
	checkStorage("has statistics at the secondary", "Azure Cosmos DB has no statistics", func() {
		secondary := must(aztables.NewServiceClientWithSharedKey(endpoint+"-secondary", credential, options))
		statistics := must(secondary.GetStatistics(ctx, nil)).GeoReplication
		equal(*statistics.Status, aztables.GeoReplicationStatusLive)
		isTrue(time.Since(*statistics.LastSyncTime).Abs() < time.Hour, "%v", statistics.LastSyncTime)
		_, err := service.GetStatistics(ctx, nil)
		refused(err, 400, "InvalidQueryParameterValue")
	})
	check("connects by a connection string", func() {
		_, name := newTable()
		for _, end := range []string{"", ";"} {
			connection := fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;TableEndpoint=%s%s",
				account, key, endpoint, end)
			connected := must(aztables.NewServiceClientFromConnectionString(connection, options))
			must(connected.NewClient(name).UpsertEntity(ctx, marshal(person("ada")), nil))
		}
	})
	check("reads from the secondary", func() {
		table, name := newTable()
		insert(table, person("ada", london))
		second := must(aztables.NewServiceClientWithSharedKey(endpoint+"-secondary", credential, options)).NewClient(name)
		equal(get(second, "se", "ada")["City"], "London")
		_, err := second.DeleteEntity(ctx, "se", "ada", nil)
		if isCosmos { // whose regions all take writes
			ensure(err)
		} else {
			refused(err, 403, "InsufficientAccountPermissions")
		}
	})
}
